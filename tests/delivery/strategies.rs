//! Random settings, and random histories.

use std::time::Duration;

use corriere_broker::{DeadLetters, DestinationPolicy, Settings};
use corriere_core::provider::Credit;
use corriere_core::{DestinationPattern, RedeliveryOverrides};
use proptest::prelude::*;

use crate::operations::{Deed, Look, Misuse, Operation, Pick, Place, Policy, Window, Word};

/// The settings of a history.
pub(crate) fn settings() -> impl Strategy<Value = Settings> {
    // Where copies of non-persistent messages are kept their exact size is the broker's, so memory is ample there.
    let memory = prop_oneof![
        3 => Just((64 * 1024 * 1024, false)),
        2 => Just((64 * 1024 * 1024, true)),
        3 => Just((4_000, false)),
    ];
    (memory, dead_letters(), policy(), policies()).prop_map(
        |((memory_limit, dead_letter_non_persistent), dead_letters, redelivery, mut policies)| {
            for policy in &mut policies {
                policy.dead_letter_non_persistent =
                    policy.dead_letter_non_persistent.map(|is_kept| is_kept && dead_letter_non_persistent);
            }
            Settings {
                memory_limit,
                redelivery: redelivery.policy().unwrap_or_default(),
                dead_letters,
                dead_letter_non_persistent,
                policies,
                send_deadline: Duration::from_secs(3),
                ..Settings::default()
            }
        },
    )
}

fn dead_letters() -> impl Strategy<Value = DeadLetters> {
    prop_oneof![
        3 => Just(DeadLetters::Individual),
        1 => Just(DeadLetters::Shared),
        1 => Just(DeadLetters::Discard),
    ]
}

/// Policies for some of the destinations, of which two fit the same queue.
fn policies() -> impl Strategy<Value = Vec<DestinationPolicy>> {
    let patterns = [
        DestinationPattern::queue("a"),
        DestinationPattern::queue(">"),
        DestinationPattern::topic("*"),
        DestinationPattern::queue("DLQ.>"),
    ];
    let policies: Vec<_> = patterns
        .into_iter()
        .map(|pattern| prop::option::weighted(0.3, destination_policy(pattern.expect("a pattern"))))
        .collect();
    policies.prop_map(|policies| policies.into_iter().flatten().collect())
}

fn destination_policy(pattern: DestinationPattern) -> impl Strategy<Value = DestinationPolicy> {
    let redelivery = (prop::option::of(0..3_u32), prop::option::of(any::<bool>()));
    let dead_letters = (prop::option::of(dead_letters()), prop::option::of(any::<bool>()));
    (redelivery, prop::option::of(0..5_u32), dead_letters).prop_map(
        move |((maximum, non_blocking), prefetch, (dead_letters, dead_letter_non_persistent))| {
            let redelivery = RedeliveryOverrides {
                maximum_redeliveries: maximum.map(Some),
                non_blocking,
                ..RedeliveryOverrides::default()
            };
            let pattern = pattern.clone();
            DestinationPolicy { pattern, redelivery, prefetch, dead_letters, dead_letter_non_persistent }
        },
    )
}

/// A history.
pub(crate) fn history() -> impl Strategy<Value = Vec<Operation>> {
    prop::collection::vec(operation(), 1..200)
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation as O;
    prop_oneof![
        1 => Just(O::Connect),
        3 => pick().prop_map(|connection| O::OpenSession { connection }),
        10 => (pick(), place(), credit(), any::<bool>(), policy(), any::<bool>()).prop_map(
            |(session, place, credit, is_default, policy, no_local)| O::Subscribe {
                session, place, credit, is_default, policy, no_local
            }
        ),
        8 => (pick(), 0..2_u8, rarely(), credit(), policy(), rarely()).prop_map(
            |(session, name, is_to_other, credit, policy, no_local)| O::SubscribeDurably {
                session, name, is_to_other, credit, policy, no_local
            }
        ),
        2 => (pick(), 0..3_u8).prop_map(|(connection, name)| O::Unsubscribe { connection, name }),
        40 => (pick(), send_place(), 3..6_u8, any::<bool>(), size(), live(), sometimes()).prop_map(
            |(session, place, priority, persistent, size, live, transacted)| O::Send {
                session, place, priority, persistent, size, live, transacted
            }
        ),
        16 => (pick(), 1..6_u8).prop_map(|(subscription, count)| O::HandOver { subscription, count }),
        40 => (pick(), 0..3_u8, 1..5_u8, word(), sometimes()).prop_map(
            |(subscription, skip, count, word, transacted)| O::Acknowledge {
                subscription, skip, count, word, transacted
            }
        ),
        6 => (pick(), 1..5_u8).prop_map(|(subscription, credit)| O::Grant { subscription, credit }),
        2 => pick().prop_map(|subscription| O::Drain { subscription }),
        3 => (pick(), window()).prop_map(|(subscription, window)| O::ChangeWindow { subscription, window }),
        2 => (place(), 0..5_u8).prop_map(|(place, prefetch)| O::SetPrefetch { place, prefetch }),
        4 => (managed_place(), deed(), place(), 1..4_u8).prop_map(
            |(place, deed, to, every)| O::Manage { place, deed, to, every }
        ),
        2 => (pick(), misuse()).prop_map(|(session, misuse)| O::Misuse { session, misuse }),
        6 => pick().prop_map(|session| O::Commit { session }),
        5 => pick().prop_map(|session| O::Rollback { session }),
        4 => (pick(), 0..4_u8).prop_map(
            |(subscription, handed_over)| O::CloseSubscription { subscription, handed_over }
        ),
        2 => pick().prop_map(|session| O::CloseSession { session }),
        1 => pick().prop_map(|connection| O::Close { connection }),
        1 => pick().prop_map(|connection| O::Vanish { connection }),
        12 => prop_oneof![1..200_u16, 200..4_000_u16].prop_map(|millis| O::Advance { millis }),
        3 => Just(O::StoreWaits),
        6 => prop_oneof![1..4_u8, Just(255)].prop_map(|count| O::StoreAnswers { count }),
        2 => Just(O::StoreFails),
        2 => any::<bool>().prop_map(|is_full| O::StoreFills { is_full }),
        2 => Just(O::StoreRefuses),
        1 => (1..3_u8).prop_map(|count| O::BodiesAreDamaged { count }),
        3 => (prop_oneof![0..4_u8, Just(255)], prop_oneof![2 => Just(0_u16), 1 => 1..4_000_u16]).prop_map(
            |(survive, set_back)| O::Restart { survive, set_back }
        ),
        4 => (pick(), sometimes()).prop_map(|(session, transacted)| O::Resend { session, transacted }),
        8 => pick().prop_map(|session| O::BeginDistributed { session }),
        16 => (pick(), any::<bool>()).prop_map(|(session, ends_first)| O::Prepare { session, ends_first }),
        2 => (pick(), pick(), any::<bool>()).prop_map(
            |(connection, transaction, commits)| O::EndPrepared { connection, transaction, commits }
        ),
        4 => (pick(), sometimes()).prop_map(|(connection, is_topic)| O::CreateTemporary { connection, is_topic }),
        3 => (pick(), pick()).prop_map(
            |(connection, temporary)| O::DeleteTemporary { connection, temporary }
        ),
        1 => pick().prop_map(|connection| O::Watch { connection }),
        4 => (pick(), place()).prop_map(|(session, place)| O::Browse { session, place }),
        8 => (pick(), look()).prop_map(|(browser, look)| O::Look { browser, look }),
        1 => pick().prop_map(|connection| O::ListPrepared { connection }),
    ]
}

fn rarely() -> impl Strategy<Value = bool> {
    prop_oneof![9 => Just(false), 1 => Just(true)]
}

fn pick() -> impl Strategy<Value = Pick> {
    any::<u8>().prop_map(Pick)
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        4 => Just(Place::A),
        2 => Just(Place::B),
        2 => Just(Place::Topic),
        1 => Just(Place::DeadLetters),
        2 => pick().prop_map(Place::Temporary),
    ]
}

fn managed_place() -> impl Strategy<Value = Place> {
    prop_oneof![2 => place(), 1 => Just(Place::DeadLetters)]
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        1 => Just(Deed::Purge),
        3 => Just(Deed::Retry),
        3 => Just(Deed::Move),
        2 => Just(Deed::Copy),
    ]
}

fn send_place() -> impl Strategy<Value = Place> {
    prop_oneof![
        4 => Just(Place::A),
        2 => Just(Place::B),
        2 => Just(Place::Topic),
        2 => pick().prop_map(Place::Temporary),
    ]
}

fn credit() -> impl Strategy<Value = Credit> {
    prop_oneof![
        1 => Just(Credit::Explicit),
        4 => window().prop_map(|Window(prefetch, extension)| Credit::Window { prefetch, extension }),
    ]
}

fn window() -> impl Strategy<Value = Window> {
    (prop_oneof![2 => 1..3_u32, 1 => 3..6_u32], prop_oneof![1 => Just(None), 2 => (0..3_u32).prop_map(Some)])
        .prop_map(|(prefetch, extension)| Window(prefetch, extension))
}

fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::Default),
        Just(Policy::Once),
        Just(Policy::Never),
        Just(Policy::BackOff),
        Just(Policy::NonBlocking),
        Just(Policy::Endless),
    ]
}

fn word() -> impl Strategy<Value = Word> {
    prop_oneof![
        3 => Just(Word::Delivered),
        6 => Just(Word::Standard),
        3 => Just(Word::Individual),
        2 => Just(Word::Poison),
        1 => Just(Word::Undeliverable),
        1 => Just(Word::Expired),
        1 => Just(Word::Unmatched),
        1 => Just(Word::Retained),
        5 => Just(Word::Redelivered),
        2 => (0..2_000_u16).prop_map(Word::RedeliveredAfter),
        2 => Just(Word::ConversionFailed),
        1 => Just(Word::OutOfResources),
    ]
}

fn look() -> impl Strategy<Value = Look> {
    prop_oneof![
        8 => (1..6_u8).prop_map(Look::Grant),
        2 => Just(Look::Drain),
        1 => Just(Look::Acknowledge),
        1 => Just(Look::HandOver),
        2 => Just(Look::Close),
    ]
}

fn misuse() -> impl Strategy<Value = Misuse> {
    prop_oneof![
        Just(Misuse::AcknowledgesWhatIsNot),
        Just(Misuse::SendsByNobody),
        Just(Misuse::CommitsWhatIsNot),
        Just(Misuse::CommitsUnprepared),
        Just(Misuse::SubscribesInNoSession),
        Just(Misuse::GrantsToNobody),
        Just(Misuse::NamesWhatIsNotItsOwn),
        Just(Misuse::NamesWhatIsThere),
    ]
}

fn size() -> impl Strategy<Value = u16> {
    prop_oneof![3 => Just(10_u16), 1 => 10..1_500_u16, 1 => 1_500..5_000_u16]
}

fn live() -> impl Strategy<Value = Option<u16>> {
    prop_oneof![3 => Just(None), 1 => (1..3_000_u16).prop_map(Some)]
}

fn sometimes() -> impl Strategy<Value = bool> {
    prop_oneof![2 => Just(false), 1 => Just(true)]
}

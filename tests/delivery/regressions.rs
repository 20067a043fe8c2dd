//! Histories that once broke a rule, as short as they got.

use corriere_broker::Settings;
use corriere_core::provider::Credit;

use crate::histories::{assert_keeps_the_rules, assert_keeps_the_rules_in};
use crate::operations::{Operation, Pick, Place, Policy, Word};
use crate::world::World;

const FIRST: Pick = Pick(0);

fn subscribe(credit: Credit) -> Operation {
    let (session, place, policy) = (FIRST, Place::A, Policy::Default);
    Operation::Subscribe { session, place, credit, is_default: false, policy, no_local: false }
}

fn send(persistent: bool, size: u16, transacted: bool) -> Operation {
    let (session, place) = (FIRST, Place::A);
    Operation::Send { session, place, priority: 4, persistent, size, live: None, transacted }
}

fn small_memory() -> Settings {
    Settings { memory_limit: 4_000, ..Settings::default() }
}

#[test]
fn granted_credit_is_used_for_what_is_sent_later() {
    let history = [
        subscribe(Credit::Explicit),
        Operation::Grant { subscription: FIRST, credit: 1 },
        send(false, 10, false),
    ];
    assert_keeps_the_rules(Settings::default(), &history);
}

#[test]
fn a_window_that_a_hand_over_widens_is_filled_at_once() {
    let history = [
        subscribe(Credit::Window { prefetch: 1, extension: None }),
        send(false, 10, false),
        send(false, 10, false),
        Operation::HandOver { subscription: FIRST, count: 1 },
    ];
    assert_keeps_the_rules(Settings::default(), &history);
}

#[test]
fn a_commit_that_waits_for_memory_is_refused_when_a_send_of_it_fails_meanwhile() {
    let history = [
        Operation::StoreWaits,
        send(true, 10, true),
        send(false, 3_500, false),
        send(false, 10, true),
        Operation::Commit { session: FIRST },
        Operation::StoreFails,
    ];
    assert_keeps_the_rules(small_memory(), &history);
}

#[test]
fn a_dead_letter_that_is_said_to_have_expired_leaves_its_queue_once() {
    let history = [
        subscribe(Credit::Window { prefetch: 1, extension: None }),
        send(true, 10, false),
        Operation::Subscribe {
            session: FIRST,
            place: Place::DeadLetters,
            credit: Credit::Window { prefetch: 1, extension: None },
            is_default: false,
            policy: Policy::Default,
            no_local: false,
        },
        Operation::Acknowledge {
            subscription: FIRST,
            skip: 0,
            count: 1,
            word: Word::Poison,
            transacted: false,
        },
        Operation::Acknowledge {
            subscription: FIRST,
            skip: 0,
            count: 1,
            word: Word::Expired,
            transacted: false,
        },
    ];
    assert_keeps_the_rules(Settings::default(), &history);
}

#[test]
fn a_non_blocking_give_back_recalls_what_was_not_handed_over() {
    let history = [
        Operation::Subscribe {
            session: FIRST,
            place: Place::A,
            credit: Credit::Window { prefetch: 2, extension: None },
            is_default: false,
            policy: Policy::NonBlocking,
            no_local: false,
        },
        send(false, 10, false),
        send(false, 10, false),
        Operation::Acknowledge {
            subscription: FIRST,
            skip: 0,
            count: 1,
            word: Word::Redelivered,
            transacted: false,
        },
    ];
    assert_keeps_the_rules(Settings::default(), &history);
}

#[test]
fn a_send_that_waits_for_memory_ends_with_its_connection() {
    let history =
        [send(false, 3_500, false), send(false, 1_000, false), Operation::Close { connection: FIRST }];
    assert_keeps_the_rules(small_memory(), &history);
}

#[test]
fn a_commit_that_the_store_gets_before_it_fails_a_send_of_it_is_refused() {
    let history = [
        Operation::StoreWaits,
        send(true, 1_000, false),
        send(true, 10, true),
        send(false, 2_500, true),
        Operation::Commit { session: FIRST },
        Operation::StoreFails,
        Operation::StoreAnswers { count: 255 },
    ];
    assert_keeps_the_rules(small_memory(), &history);
}

fn acknowledge(word: Word, transacted: bool) -> Operation {
    Operation::Acknowledge { subscription: FIRST, skip: 0, count: 1, word, transacted }
}

/// A consumer of the first durable subscription of the first client, with room for one message.
fn subscribe_durably(no_local: bool) -> Operation {
    let credit = Credit::Window { prefetch: 1, extension: None };
    let (session, policy) = (FIRST, Policy::Default);
    Operation::SubscribeDurably { session, name: 0, is_to_other: false, credit, policy, no_local }
}

fn publish(live: Option<u16>) -> Operation {
    let (session, place) = (FIRST, Place::Topic);
    Operation::Send { session, place, priority: 4, persistent: true, size: 10, live, transacted: false }
}

#[test]
fn what_a_prepared_transaction_gives_back_past_its_time_keeps_its_count_until_its_body_is_read_back() {
    let (session, place, live) = (FIRST, Place::A, Some(1_900));
    let history = [
        Operation::Send { session, place, priority: 4, persistent: true, size: 10, live, transacted: false },
        subscribe(Credit::Window { prefetch: 1, extension: None }),
        Operation::BeginDistributed { session },
        acknowledge(Word::Standard, true),
        Operation::Prepare { session, ends_first: false },
        Operation::Advance { millis: 2_000 },
        Operation::Restart { survive: 0, set_back: 0 },
        Operation::EndPrepared { connection: FIRST, transaction: FIRST, commits: false },
    ];
    assert_keeps_the_rules_in(World::with(Settings::default(), true), &history);
}

#[test]
fn a_body_that_durable_subscriptions_share_is_counted_once_when_the_dead_letter_of_one_is_put_off() {
    let credit = Credit::Window { prefetch: 1, extension: None };
    let (session, policy) = (Pick(1), Policy::Default);
    let history = [
        subscribe_durably(false),
        Operation::SubscribeDurably { session, name: 0, is_to_other: false, credit, policy, no_local: false },
        publish(None),
        Operation::StoreWaits,
        acknowledge(Word::Poison, false),
        Operation::StoreRefuses,
    ];
    assert_keeps_the_rules(Settings::default(), &history);
}

#[test]
fn what_is_to_die_in_a_durable_subscription_ends_with_it_when_that_is_made_anew() {
    for (live, word) in [(None, Word::Poison), (Some(1_000), Word::Delivered)] {
        let history = [
            subscribe_durably(false),
            Operation::CloseSubscription { subscription: FIRST, handed_over: 0 },
            publish(live),
            subscribe_durably(false),
            Operation::StoreWaits,
            acknowledge(word, false),
            Operation::StoreRefuses,
            Operation::CloseSubscription { subscription: FIRST, handed_over: 0 },
            subscribe_durably(true),
            Operation::StoreFills { is_full: false },
            Operation::Advance { millis: 6_000 },
            Operation::StoreAnswers { count: 255 },
        ];
        assert_keeps_the_rules(Settings::default(), &history);
    }
}

#[test]
fn a_temporary_queue_is_deleted_without_waiting_for_a_commit_that_waited_to_send_to_it() {
    let to_temporary = |transacted| {
        let (session, place) = (Pick(1), Place::Temporary(FIRST));
        Operation::Send { session, place, priority: 4, persistent: false, size: 10, live: None, transacted }
    };
    let (session, place) = (Pick(1), Place::A);
    let history = [
        Operation::CreateTemporary { connection: FIRST, is_topic: false },
        Operation::Send {
            session,
            place,
            priority: 4,
            persistent: true,
            size: 10,
            live: None,
            transacted: true,
        },
        send(false, 3_300, false),
        to_temporary(true),
        Operation::StoreWaits,
        Operation::Commit { session },
        Operation::DeleteTemporary { connection: FIRST, temporary: FIRST },
        Operation::StoreAnswers { count: 255 },
    ];
    assert_keeps_the_rules(small_memory(), &history);
}

#[test]
fn a_consumer_that_gets_again_at_once_what_it_gave_back_is_told_of_its_next_stall() {
    let credit = Credit::Window { prefetch: 1, extension: Some(1) };
    let (session, place, policy) = (FIRST, Place::A, Policy::Once);
    let hand_over = || Operation::HandOver { subscription: FIRST, count: 1 };
    let (subscription, word) = (FIRST, Word::Redelivered);
    let history = [
        Operation::Subscribe { session, place, credit, is_default: false, policy, no_local: false },
        send(false, 10, false),
        send(false, 10, false),
        send(false, 10, false),
        hand_over(),
        hand_over(),
        Operation::Acknowledge { subscription, skip: 1, count: 1, word, transacted: false },
        hand_over(),
    ];
    assert_keeps_the_rules(Settings::default(), &history);
}

#[test]
fn what_was_handed_over_and_ends_uncounted_is_not_counted_when_there_is_no_room_for_its_dead_letter() {
    let history = [
        send(true, 10, false),
        subscribe(Credit::Window { prefetch: 1, extension: None }),
        Operation::HandOver { subscription: FIRST, count: 1 },
        Operation::StoreWaits,
        acknowledge(Word::Undeliverable, false),
        Operation::StoreRefuses,
        Operation::Restart { survive: 0, set_back: 0 },
    ];
    assert_keeps_the_rules_in(World::with(Settings::default(), true), &history);
}

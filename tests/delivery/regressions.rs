//! Histories that once broke a rule, as short as they got.

use corriere_broker::Settings;
use corriere_core::provider::Credit;

use crate::histories::assert_keeps_the_rules;
use crate::operations::{Operation, Pick, Place, Policy, Word};

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

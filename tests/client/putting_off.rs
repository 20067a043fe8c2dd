//! Acknowledgements that are put off: `DUPS_OK` on topics, and `jms.optimizeAcknowledge`.

use std::sync::Arc;
use std::time::Duration;

use corriere_core::AcknowledgeMode::{self, Auto, Client, DupsOk, Individual, Transacted};
use corriere_core::provider::Cause;
use corriere_core::{Connection, Consumer, Destination, Release, Session};
use tokio::sync::Semaphore;

use crate::overheard::{acknowledged, connect_with, said};
use crate::support::{TestBroker, firsts, next, now, nth, queue, see, text, within};

const OPTIMIZED: &str = "jms.prefetchPolicy.all=10&jms.optimizeAcknowledge=true";

fn topic() -> Destination {
    Destination::topic("t").unwrap()
}

/// A consumer that is listened to, and messages for it.
struct Putting {
    broker: TestBroker,
    connection: Connection,
    session: Session,
    consumer: Consumer,
    destination: Destination,
}

impl Putting {
    async fn off(options: &str, mode: AcknowledgeMode, destination: Destination, messages: usize) -> Self {
        let broker = TestBroker::start();
        let (connection, session) = connect_with(&broker, options, mode).await;
        let consumer = session.create_consumer(&destination).await.unwrap();
        broker.send_numbered(&destination, messages).await;
        Self { broker, connection, session, consumer, destination }
    }

    /// `DUPS_OK` on a topic with a prefetch of 10.
    async fn dups_ok(messages: usize) -> Self {
        Self::off("jms.prefetchPolicy.all=10", DupsOk, topic(), messages).await
    }

    async fn optimized(messages: usize) -> Self {
        Self::off(OPTIMIZED, Auto, queue("q"), messages).await
    }

    /// What was acknowledged and closed since this was asked last.
    fn said(&self) -> Vec<String> {
        acknowledged(&self.broker)
    }
}

#[tokio::test]
async fn dups_ok_on_a_topic_acknowledges_a_range_at_half_of_the_prefetch_and_says_nothing_before() {
    let putting = Putting::dups_ok(10).await;
    assert_eq!(see(&putting.consumer, 4).await, firsts(1..=4));
    assert!(putting.said().is_empty());
    see(&putting.consumer, 1).await;
    assert_eq!(putting.said(), ["STANDARD 1-5"]);
    see(&putting.consumer, 5).await;
    assert_eq!(putting.said(), ["STANDARD 6-10"]);
}

#[tokio::test]
async fn half_of_a_prefetch_is_rounded_up() {
    for (prefetch, expected) in [(1, ["STANDARD 1"]), (2, ["STANDARD 1"]), (3, ["STANDARD 1-2"])] {
        let broker = TestBroker::start();
        let (_connection, session) = connect_with(&broker, "", DupsOk).await;
        let consumer = session.create_consumer_with_prefetch(&topic(), prefetch).await.unwrap();
        broker.send_numbered(&topic(), 3).await;
        for _ in 0..prefetch.div_ceil(2) {
            assert!(acknowledged(&broker).is_empty());
            next(&consumer).await;
        }
        assert_eq!(acknowledged(&broker), expected, "prefetch {prefetch}");
    }
}

#[tokio::test]
async fn dups_ok_on_a_queue_and_a_pull_acknowledge_each_as_auto_does() {
    for (destination, prefetch) in [(queue("q"), 10), (topic(), 0)] {
        let broker = TestBroker::start();
        let (_connection, session) = connect_with(&broker, "", DupsOk).await;
        let consumer = session.create_consumer_with_prefetch(&destination, prefetch).await.unwrap();
        broker.send_numbered(&destination, 2).await;
        see(&consumer, 2).await;
        assert_eq!(said(&broker), ["STANDARD 1", "STANDARD 2"], "{destination}");
    }
}

#[tokio::test]
async fn when_nothing_more_waits_dups_ok_says_what_it_has_put_off() {
    let putting = Putting::dups_ok(3).await;
    see(&putting.consumer, 3).await;
    assert!(putting.said().is_empty());
    assert_eq!(now(&putting.consumer).await, None);
    assert_eq!(putting.said(), ["STANDARD 1-3"]);
    assert_eq!(putting.broker.counts(&putting.destination).pending, 0);
}

#[tokio::test]
async fn optimized_acknowledgements_are_ranges_at_0_65_of_the_prefetch() {
    for (mode, destination) in [(Auto, queue("q")), (Auto, topic()), (DupsOk, queue("q"))] {
        let putting = Putting::off(OPTIMIZED, mode, destination, 20).await;
        see(&putting.consumer, 6).await;
        assert!(putting.said().is_empty(), "{mode:?} {}", putting.destination);
        see(&putting.consumer, 1).await;
        assert_eq!(putting.said(), ["STANDARD 1-7"], "{mode:?} {}", putting.destination);
        see(&putting.consumer, 13).await;
        assert_eq!(putting.said(), ["STANDARD 8-14"]);
        assert_eq!(now(&putting.consumer).await, None);
        assert!(putting.said().is_empty(), "also while nothing waits");
    }
}

/// Decision 4: where the broker marks a delivery, which costs no more than a note, it counts if the process dies.
#[tokio::test]
async fn of_what_is_put_off_only_what_the_broker_marked_is_told_when_it_is_handed_over() {
    let putting = Putting::optimized(7).await;
    see(&putting.consumer, 7).await;
    let mut expected: Vec<_> = (1..=6).map(|number| format!("DELIVERED {number}")).collect();
    expected.push("STANDARD 1-7".to_owned());
    assert_eq!(
        said(&putting.broker),
        expected,
        "what is acknowledged as it is handed over needs no other word"
    );
}

/// What a topic's consumer is sent is not stored, and so not marked, as nothing is that comes over a wire.
#[tokio::test]
async fn of_what_is_put_off_without_a_mark_the_oldest_is_told_when_it_is_handed_over() {
    let putting = Putting::dups_ok(7).await;
    see(&putting.consumer, 4).await;
    assert_eq!(said(&putting.broker), ["DELIVERED 1"], "one word a range");
    see(&putting.consumer, 3).await;
    assert_eq!(said(&putting.broker), ["STANDARD 1-5", "DELIVERED 6"]);
}

/// Otherwise it would count again with each process that a later message kills.
#[tokio::test]
async fn what_was_redelivered_without_a_mark_is_not_put_off() {
    let putting = Putting::dups_ok(7).await;
    let take = async || within(putting.consumer.take()).await.unwrap().unwrap();
    let no = || Release::Redeliver { delay: None, cause: Cause::failure("no") };
    let (one, two) = (take().await, take().await);
    one.acknowledge().await.unwrap();
    two.release(no()).await.unwrap();
    assert_eq!(said(&putting.broker), ["DELIVERED 1", "STANDARD 1", "REDELIVERED 2"]);
    // All that is sent again has a new number.
    let again = take().await;
    assert_eq!((text(&again), again.count()), ("m2", 2));
    assert_eq!(said(&putting.broker), ["DELIVERED 8"]);
    see(&putting.consumer, 1).await;
    assert_eq!(said(&putting.broker), ["STANDARD 9"], "nothing is put off while the application has it");
    again.acknowledge().await.unwrap();
    assert_eq!(said(&putting.broker), ["STANDARD 8"]);
    see(&putting.consumer, 1).await;
    assert_eq!(said(&putting.broker), ["DELIVERED 10"]);

    take().await.release(no()).await.unwrap();
    assert_eq!(said(&putting.broker), ["STANDARD 10", "REDELIVERED 11"]);
    see(&putting.consumer, 1).await;
    assert_eq!(said(&putting.broker), ["STANDARD 14"], "it says that it was handed over, too");
    see(&putting.consumer, 1).await;
    assert_eq!(said(&putting.broker), ["DELIVERED 15"], "what comes for the first time is put off as before");
}

#[tokio::test]
async fn with_a_prefetch_of_one_each_message_is_acknowledged_whatever_is_optimized() {
    let broker = TestBroker::start();
    let (_connection, session) = connect_with(&broker, OPTIMIZED, Auto).await;
    let consumer = session.create_consumer_with_prefetch(&queue("q"), 1).await.unwrap();
    broker.send_numbered(&queue("q"), 2).await;
    see(&consumer, 2).await;
    assert_eq!(said(&broker), ["STANDARD 1", "STANDARD 2"]);
}

#[tokio::test]
async fn an_optimized_acknowledgement_is_due_at_the_next_message_after_its_timeout() {
    let putting = Putting::optimized(8).await;
    see(&putting.consumer, 2).await;
    putting.broker.clock.advance(Duration::from_millis(299));
    see(&putting.consumer, 1).await;
    assert!(putting.said().is_empty());
    putting.broker.clock.advance(Duration::from_millis(1));
    assert!(putting.said().is_empty(), "time alone says nothing");
    see(&putting.consumer, 1).await;
    assert_eq!(putting.said(), ["STANDARD 1-4"]);
    see(&putting.consumer, 1).await;
    assert!(putting.said().is_empty(), "it counts anew");

    let options = format!("{OPTIMIZED}&jms.optimizeAcknowledgeTimeOut=0");
    let putting = Putting::off(&options, Auto, queue("q"), 2).await;
    putting.broker.clock.advance(Duration::from_secs(3600));
    see(&putting.consumer, 2).await;
    assert!(putting.said().is_empty(), "a timeout of 0 is none");
}

#[tokio::test]
async fn a_timer_acknowledges_what_was_put_off_although_no_message_comes() {
    let options = format!("{OPTIMIZED}&jms.optimizedAckScheduledAckInterval=1000");
    let putting = Putting::off(&options, Auto, queue("q"), 2).await;
    see(&putting.consumer, 2).await;
    // The timer may begin to wait only now.
    crate::support::eventually("the acknowledgement", || {
        putting.broker.clock.advance(Duration::from_millis(100));
        match putting.broker.counts(&putting.destination).acknowledged {
            2 => Ok(()),
            other => Err(other.to_string()),
        }
    })
    .await;
    assert_eq!(putting.said(), ["STANDARD 1-2"]);
}

#[tokio::test]
async fn where_it_means_nothing_optimizing_changes_nothing() {
    for mode in [Client, Individual, Transacted] {
        let putting = Putting::off(OPTIMIZED, mode, queue("q"), 8).await;
        see(&putting.consumer, 8).await;
        let expected: Vec<_> = (1..=8).map(|number| format!("DELIVERED {number}")).collect();
        assert_eq!(said(&putting.broker), expected, "{mode:?}");
    }
    let broker = TestBroker::start();
    let (_connection, session) = connect_with(&broker, OPTIMIZED, Auto).await;
    broker.send_numbered(&queue("q"), 8).await;
    let mut browser = session.create_browser(&queue("q")).await.unwrap();
    while within(browser.next()).await.unwrap().is_some() {}
    assert!(said(&broker).is_empty(), "a browser acknowledges nothing");
}

/// What ends a consumer in order, and what is said of the three messages that it had put off.
#[tokio::test]
async fn nothing_that_was_handled_comes_back_after_an_orderly_end() {
    for putting in [Putting::dups_ok(4).await, Putting::optimized(4).await] {
        see(&putting.consumer, 3).await;
        putting.consumer.close().await.unwrap();
        assert_eq!(putting.said(), ["STANDARD 1-3", "close"]);
    }
    for putting in [Putting::dups_ok(4).await, Putting::optimized(4).await] {
        see(&putting.consumer, 3).await;
        putting.session.close().await.unwrap();
        assert_eq!(putting.said(), ["STANDARD 1-3", "close"]);
    }
    for putting in [Putting::dups_ok(4).await, Putting::optimized(4).await] {
        see(&putting.consumer, 3).await;
        putting.connection.close().await.unwrap();
        assert_eq!(putting.said(), ["STANDARD 1-3", "close"]);
    }
    for putting in [Putting::dups_ok(4).await, Putting::optimized(4).await] {
        see(&putting.consumer, 3).await;
        let Putting { broker, consumer, .. } = putting;
        drop(consumer);
        assert_eq!(acknowledged(&broker), ["STANDARD 1-3", "close"]);
    }
    let putting = Putting::optimized(4).await;
    see(&putting.consumer, 3).await;
    putting.session.close().await.unwrap();
    assert_eq!(putting.broker.drain(&putting.destination).await, firsts(4..=4));
}

#[tokio::test]
async fn stopping_the_connection_acknowledges_what_was_put_off() {
    for putting in [Putting::dups_ok(4).await, Putting::optimized(4).await] {
        see(&putting.consumer, 3).await;
        putting.connection.stop().unwrap();
        assert_eq!(putting.said(), ["STANDARD 1-3"]);
        putting.connection.start().unwrap();
        assert_eq!(see(&putting.consumer, 1).await, firsts(4..=4));
    }
}

#[tokio::test]
async fn each_scope_acknowledges_what_was_put_off() {
    let putting = Putting::optimized(4).await;
    see(&putting.consumer, 2).await;
    putting.consumer.acknowledge().await.unwrap();
    assert_eq!(putting.said(), ["STANDARD 1-2"]);
    see(&putting.consumer, 1).await;
    putting.session.acknowledge().await.unwrap();
    assert_eq!(putting.said(), ["STANDARD 3"]);
    assert_eq!(putting.broker.counts(&putting.destination).acknowledged, 3);
}

#[tokio::test]
async fn recover_brings_back_nothing_that_was_received_and_put_off() {
    for putting in [Putting::dups_ok(4).await, Putting::optimized(4).await] {
        see(&putting.consumer, 3).await;
        putting.session.recover().await.unwrap();
        assert_eq!(putting.said(), ["STANDARD 1-3"]);
        assert_eq!(see(&putting.consumer, 1).await, firsts(4..=4));
    }
}

#[tokio::test]
async fn what_was_put_off_is_told_before_anything_else_is_said_of_a_delivery() {
    let putting = Putting::optimized(5).await;
    let take = async || within(putting.consumer.take()).await.unwrap().unwrap();
    let mut taken = Vec::new();
    for _ in 0..4 {
        taken.push(take().await);
    }
    putting.said();
    // m2 is in between and stays with the application.
    for number in [0, 2] {
        taken[number].acknowledge().await.unwrap();
        assert!(taken[number].is_settled());
    }
    assert!(putting.said().is_empty());
    taken[3].release(Release::Redeliver { delay: None, cause: Cause::failure("no") }).await.unwrap();
    assert_eq!(putting.said(), ["STANDARD 1", "STANDARD 3", "REDELIVERED 4"]);
    assert!(!taken[1].is_settled());
    taken[1].acknowledge().await.unwrap();
    assert_eq!(see(&putting.consumer, 2).await, [nth("m4", 2), crate::support::first("m5")]);
}

#[tokio::test]
async fn a_message_that_expires_on_its_way_is_told_of_behind_what_was_put_off() {
    let putting = Putting::optimized(2).await;
    let options = corriere_core::SendOptions {
        time_to_live: Some(Duration::from_secs(1)),
        ..corriere_core::SendOptions::default()
    };
    let sender = putting.broker.session(Auto).await;
    let message = corriere_core::Message::text("brief");
    sender.send(&putting.destination, &message, &options).await.unwrap();
    see(&putting.consumer, 2).await;
    let clock = &putting.broker.clock;
    // The broker may find it first.
    clock.advance(Duration::from_secs(2));
    assert_eq!(now(&putting.consumer).await, None);
    let said = putting.said();
    assert!(said == ["STANDARD 1-2", "EXPIRED 3"] || said.is_empty(), "{said:?}");
}

#[tokio::test]
async fn what_is_taken_and_what_is_put_off_do_not_fill_a_window_between_them() {
    for prefetch in 1..=10 {
        let broker = TestBroker::start();
        let q = queue("q");
        broker.send_numbered(&q, 40).await;
        let (_connection, session) = connect_with(&broker, OPTIMIZED, Auto).await;
        let consumer = session.create_consumer_with_prefetch(&q, prefetch).await.unwrap();
        let mut held = Vec::new();
        for number in 0..40 {
            // As many as the window has room for are held back while the others are acknowledged.
            if held.len() + 1 < prefetch as usize && number % 3 == 0 {
                held.push(within(consumer.take()).await.unwrap().unwrap());
            } else {
                next(&consumer).await;
            }
        }
        session.acknowledge().await.unwrap();
        assert_eq!(broker.counts(&q).acknowledged, 40 - held.len() as u64, "prefetch {prefetch}");
    }
}

#[tokio::test]
async fn a_window_that_is_made_smaller_is_not_filled_by_what_was_put_off() {
    let putting = Putting::optimized(6).await;
    see(&putting.consumer, 6).await;
    assert!(putting.said().is_empty());
    putting.consumer.set_prefetch(2).await.unwrap();
    assert_eq!(putting.said(), ["STANDARD 1-6"]);
    putting.broker.send_numbered(&putting.destination, 3).await;
    assert_eq!(see(&putting.consumer, 3).await, firsts(1..=3));
    assert_eq!(putting.said(), ["STANDARD 7-8"]);
}

#[tokio::test]
async fn a_message_that_a_listener_failed_with_is_never_among_those_put_off() {
    for (options, mode, destination) in
        [("jms.prefetchPolicy.all=10", DupsOk, topic()), (OPTIMIZED, Auto, queue("q"))]
    {
        let putting = Putting::off(options, mode, destination, 0).await;
        let ended = Arc::new(Semaphore::new(0));
        let end = Arc::clone(&ended);
        putting
            .consumer
            .set_message_listener(move |delivery| {
                let end = Arc::clone(&end);
                async move {
                    end.add_permits(1);
                    if delivery.count() == 1 && text(&delivery) == "m3" {
                        return Err("once".into());
                    }
                    Ok(())
                }
            })
            .unwrap();
        putting.broker.send_numbered(&putting.destination, 4).await;
        within(ended.acquire_many(5)).await.unwrap().forget();
        putting.session.close().await.unwrap();
        let counts = putting.broker.counts(&putting.destination);
        assert_eq!(counts.pending, 0, "{mode:?} {counts:?}");
        let said = putting.said();
        let given_back = said.iter().position(|word| word == "REDELIVERED 3").unwrap();
        assert!(
            said.iter().all(|word| !word.starts_with("STANDARD 1-3") && word != "STANDARD 3"),
            "{mode:?} {said:?}"
        );
        assert!(given_back > 0, "{mode:?}: what was put off is told before: {said:?}");
    }
}

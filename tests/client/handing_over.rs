//! What the broker is told of a message that goes into the application's hands (decision 4).

use std::sync::{Arc, Mutex};

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::{DeliveryMode, Destination, Message, SendOptions};

use crate::overheard::{self, Word, connect};
use crate::support::{TestBroker, eventually, next, others_run, queue, see, within};

fn note(broker: &str, word: String) {
    overheard::note(broker, Word::Note(word));
}

/// The numbers of deliveries that were handed over (`+1`) and acknowledged (`-1`), and what the test noted in between.
fn overheard(broker: &TestBroker) -> Vec<String> {
    let words = overheard::take(broker).into_iter().filter_map(|word| match word {
        Word::HandedOver(number) => Some(format!("+{number}")),
        Word::Acknowledged { first, last, .. } if first == last => Some(format!("-{first}")),
        Word::Acknowledged { first, last, .. } => Some(format!("-{first}..{last}")),
        Word::Note(word) => Some(word),
        Word::Committed | Word::RolledBack | Word::Closed => None,
    });
    words.collect()
}

async fn send_unkept(broker: &TestBroker, destination: &Destination, count: usize) {
    let session = broker.session(Auto).await;
    let options = SendOptions { delivery_mode: Some(DeliveryMode::NonPersistent), ..SendOptions::default() };
    for _ in 0..count {
        within(session.send(destination, &Message::text("m"), &options)).await.unwrap();
    }
}

#[tokio::test]
async fn each_persistent_message_is_told_before_the_caller_has_it_and_before_it_is_acknowledged() {
    for mode in [Client, Transacted] {
        let broker = TestBroker::start();
        let q = queue("q");
        broker.send_numbered(&q, 3).await;
        let (_connection, session) = connect(&broker, mode).await;
        let consumer = session.create_consumer(&q).await.unwrap();
        for _ in 0..3 {
            next(&consumer).await;
            note(broker.broker.name(), "returned".to_owned());
        }
        session.acknowledge().await.unwrap();
        if mode == Transacted {
            session.commit().await.unwrap();
        }
        let expected = ["+1", "returned", "+2", "returned", "+3", "returned", "-1..3"];
        assert_eq!(overheard(&broker), expected, "{mode:?}");
    }
}

#[tokio::test]
async fn a_receive_that_acknowledges_as_it_returns_says_only_that() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 2).await;
    let (_connection, session) = connect(&broker, Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    see(&consumer, 2).await;
    assert_eq!(overheard(&broker), ["-1", "-2"]);
}

#[tokio::test]
async fn what_is_taken_to_be_settled_later_is_told_in_auto_too() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 1).await;
    let (_connection, session) = connect(&broker, Auto).await;
    let consumer = session.create_consumer_with_prefetch(&q, 0).await.unwrap();
    let delivery = within(consumer.take()).await.unwrap().unwrap();
    assert_eq!(overheard(&broker), ["+1"]);
    delivery.acknowledge().await.unwrap();
    assert_eq!(overheard(&broker), ["-1"]);
}

#[tokio::test]
async fn a_listener_begins_when_the_broker_has_been_told() {
    for mode in [Auto, Client, Transacted] {
        let broker = TestBroker::start();
        let q = queue("q");
        broker.send_numbered(&q, 2).await;
        let (_connection, session) = connect(&broker, mode).await;
        let consumer = session.create_consumer(&q).await.unwrap();
        let name = broker.broker.name().to_owned();
        let (handled, counted) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (count, all) = (Arc::clone(&handled), Arc::clone(&counted));
        consumer
            .set_message_listener(move |delivery| {
                note(&name, "began".to_owned());
                all.lock().unwrap().push(delivery.count());
                let count = Arc::clone(&count);
                async move {
                    *count.lock().unwrap() += 1;
                    Ok(())
                }
            })
            .unwrap();
        eventually("the number of handled messages", || match *handled.lock().unwrap() {
            2 => Ok(()),
            other => Err(other.to_string()),
        })
        .await;
        others_run().await;
        let expected: &[&str] = match mode {
            Auto => &["+1", "began", "-1", "+2", "began", "-2"],
            _ => &["+1", "began", "+2", "began"],
        };
        assert_eq!(overheard(&broker), expected, "{mode:?}");
        assert_eq!(*counted.lock().unwrap(), [1, 1]);
    }
}

#[tokio::test]
async fn of_messages_that_are_not_kept_the_broker_is_told_for_the_windows_sake_only() {
    let broker = TestBroker::start();
    let q = queue("q");
    send_unkept(&broker, &q, 10).await;
    let (_connection, session) = connect(&broker, Client).await;
    let consumer = session.create_consumer_with_prefetch(&q, 4).await.unwrap();
    for expected in [&[][..], &["+2"], &[], &["+4"]] {
        next(&consumer).await;
        assert_eq!(overheard(&broker), expected);
    }
    let (_connection, session) = connect(&broker, Auto).await;
    let consumer = session.create_consumer_with_prefetch(&q, 4).await.unwrap();
    within(consumer.take()).await.unwrap().unwrap();
    within(consumer.take_timeout(std::time::Duration::ZERO)).await.unwrap();
    assert_eq!(overheard(&broker), [""; 0]);
}

#[tokio::test]
async fn a_receive_that_is_dropped_tells_nothing() {
    let broker = TestBroker::start();
    let q = queue("q");
    let (_connection, session) = connect(&broker, Client).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    {
        let receive = consumer.receive();
        tokio::pin!(receive);
        tokio::select! {
            biased;
            _ = &mut receive => panic!("there is nothing to receive"),
            () = others_run() => {}
        }
        broker.send_numbered(&q, 1).await;
    }
    others_run().await;
    assert_eq!(overheard(&broker), [""; 0]);
    next(&consumer).await;
    assert_eq!(overheard(&broker), ["+1"]);
}

#[tokio::test]
async fn what_is_in_hand_while_an_earlier_one_is_given_back_is_not_taken_back_with_it() {
    for persistent in [true, false] {
        let broker = TestBroker::start();
        let q = queue("q");
        if persistent {
            broker.send_numbered(&q, 5).await;
        } else {
            send_unkept(&broker, &q, 5).await;
        }
        let (_connection, session) = connect(&broker, Auto).await;
        let consumer = session.create_consumer(&q).await.unwrap();
        let first = within(consumer.take()).await.unwrap().unwrap();
        let second = within(consumer.take()).await.unwrap().unwrap();
        let cause = corriere_core::provider::Cause::failure("no");
        first.release(corriere_core::Release::Redeliver { delay: None, cause }).await.unwrap();
        let expected: &[&str] = if persistent { &["+1", "+2", "-1"] } else { &["+2", "-1"] };
        assert_eq!(overheard(&broker), expected);
        second.acknowledge().await.unwrap();
        let counts: Vec<u32> = [next(&consumer).await, next(&consumer).await]
            .iter()
            .map(corriere_core::Delivery::count)
            .collect();
        assert_eq!(counts, [2, 1]);
        assert_eq!(broker.counts(&q).acknowledged, 3);
    }
}

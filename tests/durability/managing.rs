//! What an operator does with queues: nothing is lost or there twice, over restarts, crashes at every write, and a memory that
//! has not room for all.

use corriere_broker::{OperationCounts, all};
use corriere_core::AcknowledgeMode::{Auto, Client};
use corriere_core::provider::{Cause, CauseKind};
use corriere_core::{Message, Release, SendOptions};

use crate::support::{End, Home, Running, next, property, queue, text, within};

fn done(count: usize) -> OperationCounts {
    let count = count as u64;
    OperationCounts { matched: count, done: count, ..OperationCounts::default() }
}

/// Sends so many messages to the queue `q`, and has all of them become dead letters.
async fn die(broker: &Running, count: usize) {
    broker.send(&queue("q"), 1..=count).await;
    let consumer = broker.consumer(Client, &queue("q")).await;
    for _ in 0..count {
        let cause = Cause { kind: CauseKind::Failure, text: "E1".into(), listener: None };
        within(next(&consumer).await.release(Release::DeadLetter { cause })).await.unwrap();
    }
    broker.until(&queue("DLQ.q"), |counts| counts.pending == count as u64).await;
}

/// The texts and the delivery counts of all that is ready in a queue.
async fn drained(broker: &Running, name: &str) -> Vec<(String, u32)> {
    let seen = broker.drain(&queue(name)).await;
    seen.into_iter().map(|seen| (seen.text, seen.count)).collect()
}

fn fresh(count: usize) -> Vec<(String, u32)> {
    (1..=count).map(|number| (format!("m{number}"), 1)).collect()
}

#[tokio::test]
async fn a_move_whose_process_ends_at_any_write_leaves_each_message_in_one_queue() {
    let mut moved_whole = 0;
    for at in 1..=200 {
        let mut home = Home::recorded();
        let broker = home.start();
        broker.send(&queue("q"), 1..=3).await;
        let files = home.memory().clone();
        files.crash_at(files.operations() + at, at);
        let moved = within(broker.broker.queue("q").unwrap().move_to(&queue("away"), all)).await;
        let end = if at % 2 == 0 { End::Kill } else { End::PowerCut(at) };
        let broker = home.restart(broker, end);
        let (stayed, gone) = (drained(&broker, "q").await, drained(&broker, "away").await);
        let mut everything = [stayed.clone(), gone.clone()].concat();
        everything.sort();
        assert_eq!(everything, fresh(3), "at {at}, {end:?}: {stayed:?} and {gone:?}");
        broker.stop();
        if let Ok(outcome) = moved {
            assert_eq!((outcome, gone), (done(3), fresh(3)), "what was told is so, at {at}");
            moved_whole += 1;
        }
        if moved_whole == 3 {
            return;
        }
    }
    panic!("a move takes more than 200 writes");
}

#[tokio::test]
async fn what_is_purged_moved_copied_and_retried_is_so_after_any_end() {
    for end in [End::Stop, End::Kill, End::PowerCut(1)] {
        let mut home = Home::recorded();
        let broker = home.start();
        die(&broker, 6).await;
        let letters = broker.broker.queue("DLQ.q").unwrap();
        let is = |number: usize| move |message: &Message| text(message) == format!("m{number}");
        assert_eq!(within(letters.purge(is(1))).await, Ok(done(1)));
        assert_eq!(within(letters.retry(is(2))).await, Ok(done(1)));
        assert_eq!(within(letters.move_to(&queue("away"), is(3))).await, Ok(done(1)));
        assert_eq!(within(letters.copy_to(&queue("away"), is(4))).await, Ok(done(1)));
        let counts = letters.counts();
        assert_eq!((counts.purged, counts.moved_out, counts.pending), (1, 2, 3));
        // What a power cut may take has been followed by something durable.
        broker.send(&queue("other"), 1..=1).await;
        let broker = home.restart(broker, end);
        let texts = |seen: Vec<(String, u32)>| seen.into_iter().map(|(text, _)| text).collect::<Vec<_>>();
        assert_eq!(drained(&broker, "q").await, [("m2".to_owned(), 1)], "{end:?}");
        assert_eq!(texts(drained(&broker, "away").await), ["m3", "m4"], "{end:?}");
        assert_eq!(texts(drained(&broker, "DLQ.q").await), ["m4", "m5", "m6"], "{end:?}");
        broker.stop();
    }
}

/// C-22.
#[tokio::test]
async fn dead_letters_are_retried_out_of_a_memory_that_has_not_room_for_them_and_fail_again() {
    let mut home = Home::recorded();
    home.settings.memory_limit = 8 * 1024;
    let broker = home.start();
    die(&broker, 300).await;
    let broker = home.restart(broker, End::Kill);
    let letters = broker.broker.queue("DLQ.q").unwrap();
    assert_eq!(within(letters.retry(all)).await, Ok(done(300)));
    assert!(broker.broker.memory_used() <= 2 * 8 * 1024, "{}", broker.broker.memory_used());
    let broker = home.restart(broker, End::Kill);
    let session = broker.session(Client).await;
    let consumer = session.create_consumer(&queue("q")).await.unwrap();
    let first = next(&consumer).await;
    let told =
        ["dlqDeliveryFailureCause", "dlqOriginalDestination"].map(|name| property(first.message(), name));
    assert_eq!((text(first.message()), first.count(), told), ("m1", 1, [None, None]));
    let cause = Cause { kind: CauseKind::Failure, text: "E2".into(), listener: None };
    within(first.release(Release::DeadLetter { cause })).await.unwrap();
    within(consumer.close()).await.unwrap();
    assert_eq!(drained(&broker, "q").await, fresh(300)[1..]);
    let dead = next(&broker.consumer(Client, &queue("DLQ.q")).await).await;
    assert_eq!(property(dead.message(), "dlqDeliveryFailureCause").as_deref(), Some("E2"));
    broker.stop();
}

#[tokio::test]
async fn a_retry_ends_although_a_consumer_fails_all_of_it_again_meanwhile() {
    let home = Home::recorded();
    let broker = home.start();
    die(&broker, 300).await;
    let consumer = broker.consumer(Client, &queue("q")).await;
    let failing = tokio::spawn(async move {
        for _ in 0..300 {
            let cause = Cause { kind: CauseKind::Failure, text: "again".into(), listener: None };
            within(next(&consumer).await.release(Release::DeadLetter { cause })).await.unwrap();
        }
    });
    let letters = broker.broker.queue("DLQ.q").unwrap();
    assert_eq!(within(letters.retry(all)).await, Ok(done(300)));
    within(failing).await.unwrap();
    broker.until(&queue("DLQ.q"), |counts| counts.pending == 300).await;
    assert_eq!(broker.counts(&queue("q")).pending, 0);
    broker.stop();
}

#[tokio::test]
async fn an_operator_is_told_the_nearest_name_and_that_the_broker_ended() {
    let home = Home::recorded();
    let broker = home.start();
    broker.send(&queue("orders.europe"), 1..=1).await;
    let error = broker.broker.queue("orders.eurpoe").unwrap_err().to_string();
    let expected = "has no queue `orders.eurpoe`; did you mean `orders.europe`?";
    assert!(error.ends_with(expected), "{error}");
    let orders = broker.broker.queue("orders.europe").unwrap();
    let session = broker.session(Auto).await;
    broker.broker.stop();
    assert!(session.send(&queue("q"), &Message::text("late"), &SendOptions::default()).await.is_err());
    let error = within(orders.purge(all)).await.unwrap_err().to_string();
    assert!(error.contains("stopped"), "{error}");
}

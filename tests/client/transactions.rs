//! TRANSACTED sessions.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use corriere_core::AcknowledgeMode::{Auto, Transacted};
use corriere_core::provider::Cause;
use corriere_core::{Error, Message, Release, SendOptions};

use crate::support::{
    TestBroker, first, firsts, next, now, nth, others_run, queue, see, send_text, settings, within,
};

/// Options of a send that fails at once when memory is full.
fn impatient() -> SendOptions {
    SendOptions { deadline: Some(Duration::ZERO), ..SendOptions::default() }
}

#[tokio::test]
async fn nothing_sent_is_visible_before_the_commit_and_all_of_it_after() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Transacted).await;
    let producer = session.create_producer(Some(&q)).await.unwrap();
    let observer = broker.session(Auto).await.create_consumer(&q).await.unwrap();
    for number in 1..=3 {
        producer.send(&Message::text(format!("m{number}"))).await.unwrap();
    }
    assert_eq!(now(&observer).await, None);
    session.commit().await.unwrap();
    assert_eq!(see(&observer, 3).await, firsts(1..=3));
    producer.send(&Message::text("m4")).await.unwrap();
    session.rollback().await.unwrap();
    session.commit().await.unwrap();
    assert_eq!(now(&observer).await, None);
}

#[tokio::test]
async fn a_commit_settles_what_was_received_and_a_rollback_brings_it_back_counted_and_in_order() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 5).await;
    let session = broker.session(Transacted).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    assert_eq!(see(&consumer, 2).await, firsts(1..=2));
    session.commit().await.unwrap();
    assert_eq!(broker.counts(&q).acknowledged, 2);
    assert_eq!(see(&consumer, 2).await, firsts(3..=4));
    session.rollback().await.unwrap();
    assert_eq!(see(&consumer, 3).await, [nth("m3", 2), nth("m4", 2), first("m5")]);
    session.commit().await.unwrap();
    assert_eq!((broker.counts(&q).acknowledged, broker.counts(&q).pending), (5, 0));
}

#[tokio::test]
async fn a_message_that_fails_once_keeps_its_place() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 3).await;
    let session = broker.session(Transacted).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 4 {
        seen.extend(see(&consumer, 1).await);
        if seen.len() == 1 {
            session.rollback().await.unwrap();
        } else {
            session.commit().await.unwrap();
        }
    }
    assert_eq!(seen, [first("m1"), nth("m1", 2), first("m2"), first("m3")]);
}

#[tokio::test]
async fn a_transaction_may_be_larger_than_the_prefetch() {
    for prefetch in [0, 1, 2, 7] {
        let broker = TestBroker::start();
        let q = queue("q");
        broker.send_numbered(&q, 50).await;
        let session = broker.session(Transacted).await;
        let consumer = session.create_consumer_with_prefetch(&q, prefetch).await.unwrap();
        assert_eq!(see(&consumer, 50).await, firsts(1..=50), "prefetch {prefetch}");
        session.rollback().await.unwrap();
        let again: Vec<_> = (1..=50).map(|number| nth(&format!("m{number}"), 2)).collect();
        assert_eq!(see(&consumer, 50).await, again, "prefetch {prefetch}");
        session.commit().await.unwrap();
        assert_eq!(broker.counts(&q).acknowledged, 50);
    }
}

#[tokio::test]
async fn what_is_received_and_what_is_sent_commit_together_or_not_at_all() {
    let broker = TestBroker::start();
    let (q, out) = (queue("q"), queue("out"));
    broker.send_numbered(&q, 1).await;
    let session = broker.session(Transacted).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    for count in 1..=2 {
        assert_eq!(see(&consumer, 1).await, [nth("m1", count)]);
        send_text(&session, &out, "answer").await;
        if count == 1 {
            session.rollback().await.unwrap();
            assert_eq!(broker.counts(&out).enqueued, 0);
        } else {
            session.commit().await.unwrap();
        }
    }
    assert_eq!(broker.drain(&out).await, [first("answer")]);
    assert_eq!(broker.counts(&q).pending, 0);
}

#[tokio::test]
async fn closing_or_dropping_the_session_rolls_back() {
    for close in [true, false] {
        let broker = TestBroker::start();
        let (q, out) = (queue("q"), queue("out"));
        broker.send_numbered(&q, 3).await;
        let session = broker.session(Transacted).await;
        let consumer = session.create_consumer(&q).await.unwrap();
        see(&consumer, 1).await;
        send_text(&session, &out, "never").await;
        if close {
            session.close().await.unwrap();
        } else {
            drop((session, consumer));
        }
        assert_eq!(broker.counts(&out).enqueued, 0);
        assert_eq!(broker.drain(&q).await, [nth("m1", 2), first("m2"), first("m3")]);
    }
}

#[tokio::test]
async fn what_a_closed_consumer_received_is_committed_or_rolled_back_with_the_rest() {
    for commits in [true, false] {
        let broker = TestBroker::start();
        let q = queue("q");
        broker.send_numbered(&q, 2).await;
        let session = broker.session(Transacted).await;
        let consumer = session.create_consumer(&q).await.unwrap();
        see(&consumer, 1).await;
        consumer.close().await.unwrap();
        if commits {
            session.commit().await.unwrap();
            assert_eq!(broker.drain(&q).await, [first("m2")]);
        } else {
            session.rollback().await.unwrap();
            assert_eq!(broker.drain(&q).await, [nth("m1", 2), first("m2")]);
        }
        session.close().await.unwrap();
    }
}

/// C-13.
#[tokio::test]
async fn a_send_that_is_refused_makes_the_commit_a_rollback() {
    let broker = TestBroker::with(corriere_broker::Settings { memory_limit: 100_000, ..settings() });
    let (q, source) = (queue("q"), queue("source"));
    broker.send(&source, ["m1"]).await;
    let session = broker.session(Transacted).await;
    let consumer = session.create_consumer(&source).await.unwrap();
    assert_eq!(see(&consumer, 1).await, firsts(1..=1));
    let mut sends = tokio::task::JoinSet::new();
    for number in 0..10 {
        let (session, q) = (session.clone(), q.clone());
        let message = Message::bytes(vec![0; if number == 1 { 200_000 } else { 10 }]);
        sends.spawn(async move { session.send(&q, &message, &impatient()).await });
    }
    let outcomes = within(sends.join_all()).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_err()).count(), 1);
    let refusal = outcomes.into_iter().find_map(Result::err).unwrap();

    let error = session.commit().await.unwrap_err();
    assert!(matches!(&error, Error::TransactionRolledBack { .. }), "{error:?}");
    assert!(error.to_string().contains(&refusal.to_string()), "{error}");
    assert_eq!(broker.counts(&q).enqueued, 0);
    assert_eq!(see(&consumer, 1).await, [nth("m1", 2)]);
    send_text(&session, &q, "the next transaction").await;
    session.commit().await.unwrap();
    assert_eq!(broker.drain(&q).await, [first("the next transaction")]);
    assert_eq!(broker.counts(&source).pending, 0);
}

#[tokio::test]
async fn a_rollback_after_a_refused_send_leaves_the_next_transaction_whole() {
    let broker = TestBroker::with(corriere_broker::Settings { memory_limit: 10_000, ..settings() });
    let q = queue("q");
    let session = broker.session(Transacted).await;
    send_text(&session, &q, "small").await;
    session.send(&q, &Message::bytes(vec![0; 20_000]), &impatient()).await.unwrap_err();
    session.rollback().await.unwrap();
    send_text(&session, &q, "kept").await;
    session.commit().await.unwrap();
    assert_eq!(broker.drain(&q).await, [first("kept")]);
}

#[tokio::test]
async fn a_send_that_is_dropped_makes_the_commit_a_rollback() {
    let broker = TestBroker::with(corriere_broker::Settings { memory_limit: 10_000, ..settings() });
    let q = queue("q");
    let session = broker.session(Transacted).await;
    send_text(&session, &q, "small").await;
    let (large, options) = (Message::bytes(vec![0; 20_000]), SendOptions::default());
    let mut send = Box::pin(session.send(&q, &large, &options));
    poll_fn(|cx| {
        assert!(send.as_mut().poll(cx).is_pending(), "it waits for memory");
        Poll::Ready(())
    })
    .await;
    drop(send);
    let error = within(session.commit()).await.unwrap_err();
    assert!(matches!(&error, Error::TransactionRolledBack { .. }), "{error:?}");
    assert!(error.to_string().contains("was dropped"), "{error}");
    assert_eq!(broker.broker.memory_used(), 0);
    session.commit().await.unwrap();
    assert_eq!(broker.drain(&q).await, []);
}

#[tokio::test]
async fn a_commit_waits_for_a_send_of_its_transaction_that_waits_for_memory() {
    let broker = TestBroker::with(corriere_broker::Settings { memory_limit: 2_000, ..settings() });
    let (q, filler) = (queue("q"), queue("filler"));
    let other = broker.session(Auto).await;
    other.send(&filler, &Message::bytes(vec![0; 1_500]), &SendOptions::default()).await.unwrap();
    let session = broker.session(Transacted).await;
    let send = tokio::spawn({
        let (session, q) = (session.clone(), q.clone());
        async move { session.send(&q, &Message::bytes(vec![0; 1_000]), &SendOptions::default()).await }
    });
    others_run().await;
    let commit = tokio::spawn({
        let session = session.clone();
        async move { session.commit().await }
    });
    others_run().await;
    assert!(!send.is_finished() && !commit.is_finished());
    // An acknowledgement is not held up, and makes room.
    let consumer = other.create_consumer(&filler).await.unwrap();
    next(&consumer).await;
    within(send).await.unwrap().unwrap();
    within(commit).await.unwrap().unwrap();
    assert_eq!(broker.counts(&q).enqueued, 1);
}

#[tokio::test]
async fn what_is_received_while_a_commit_fails_stays_in_the_hands_of_the_next_transaction() {
    for prefetch in [0, 10] {
        let broker = TestBroker::with(corriere_broker::Settings { memory_limit: 3_000, ..settings() });
        let (q, out) = (queue("q"), queue("out"));
        broker.send_numbered(&q, 4).await;
        let session = broker.session(Transacted).await;
        // A send waits for memory, the commit waits for it, and meanwhile the session receives. The send comes first, as
        // it need not wait once the session has what its commit would free.
        let send = tokio::spawn({
            let (session, out) = (session.clone(), out.clone());
            let options = SendOptions { deadline: Some(Duration::from_secs(1)), ..SendOptions::default() };
            async move { session.send(&out, &Message::bytes(vec![0; 6_000]), &options).await }
        });
        others_run().await;
        let consumer = session.create_consumer_with_prefetch(&q, prefetch).await.unwrap();
        assert_eq!(see(&consumer, 1).await, firsts(1..=1));
        let mut commit = Box::pin(session.commit());
        poll_fn(|cx| {
            assert!(commit.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        assert_eq!(see(&consumer, 2).await, firsts(2..=3));
        broker.clock.advance(Duration::from_secs(1));
        within(send).await.unwrap().unwrap_err();
        assert!(matches!(within(commit).await, Err(Error::TransactionRolledBack { .. })));

        session.commit().await.unwrap();
        assert_eq!(broker.counts(&q).acknowledged, 2, "prefetch {prefetch}");
        assert_eq!(see(&consumer, 2).await, [nth("m1", 2), first("m4")], "prefetch {prefetch}");
        session.commit().await.unwrap();
        assert_eq!((broker.counts(&q).pending, broker.counts(&out).enqueued), (0, 0));
    }
}

#[tokio::test]
async fn a_commit_that_is_dropped_while_it_waits_is_whole_and_the_session_goes_on() {
    for succeeds in [true, false] {
        let broker = TestBroker::with(corriere_broker::Settings { memory_limit: 3_000, ..settings() });
        let (q, out, filler) = (queue("q"), queue("out"), queue("filler"));
        broker.send_numbered(&q, 2).await;
        let other = broker.session(Auto).await;
        other.send(&filler, &Message::bytes(vec![0; 1_000]), &SendOptions::default()).await.unwrap();
        let session = broker.session(Transacted).await;
        let send = tokio::spawn({
            let (session, out) = (session.clone(), out.clone());
            let options = SendOptions { deadline: Some(Duration::from_secs(1)), ..SendOptions::default() };
            async move { session.send(&out, &Message::bytes(vec![0; 1_200]), &options).await }
        });
        others_run().await;
        let consumer = session.create_consumer(&q).await.unwrap();
        assert_eq!(see(&consumer, 1).await, firsts(1..=1));
        let mut commit = Box::pin(session.commit());
        poll_fn(|cx| {
            assert!(commit.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        drop(commit);
        if succeeds {
            let filled = other.create_consumer(&filler).await.unwrap();
            next(&filled).await;
        } else {
            broker.clock.advance(Duration::from_secs(1));
        }
        assert_eq!(within(send).await.unwrap().is_ok(), succeeds);
        // The next call finds the end of the earlier one, and is about the next transaction.
        session.commit().await.unwrap();
        let expected = if succeeds { vec![first("m2")] } else { vec![nth("m1", 2), first("m2")] };
        assert_eq!(see(&consumer, expected.len()).await, expected);
        session.commit().await.unwrap();
        assert_eq!(broker.counts(&q).pending, 0);
        assert_eq!(broker.counts(&out).enqueued, u64::from(succeeds));
    }
}

#[tokio::test]
async fn a_send_that_is_dropped_while_it_waits_for_the_commit_before_spoils_its_own_transaction() {
    let broker = TestBroker::with(corriere_broker::Settings { memory_limit: 3_000, ..settings() });
    let (q, filler) = (queue("q"), queue("filler"));
    let other = broker.session(Auto).await;
    other.send(&filler, &Message::bytes(vec![0; 2_000]), &SendOptions::default()).await.unwrap();
    let session = broker.session(Transacted).await;
    let parked = tokio::spawn({
        let (session, q) = (session.clone(), q.clone());
        async move { session.send(&q, &Message::bytes(vec![0; 1_000]), &SendOptions::default()).await }
    });
    others_run().await;
    let commit = tokio::spawn({
        let session = session.clone();
        async move { session.commit().await }
    });
    others_run().await;
    let (message, options) = (Message::text("dropped"), SendOptions::default());
    let mut send = Box::pin(session.send(&q, &message, &options));
    poll_fn(|cx| {
        assert!(send.as_mut().poll(cx).is_pending(), "it waits for the commit");
        Poll::Ready(())
    })
    .await;
    drop(send);
    let filled = other.create_consumer(&filler).await.unwrap();
    next(&filled).await;
    within(parked).await.unwrap().unwrap();
    within(commit).await.unwrap().unwrap();
    send_text(&session, &q, "sent beside it").await;
    assert!(matches!(session.commit().await, Err(Error::TransactionRolledBack { .. })));
    assert_eq!(broker.counts(&q).enqueued, 1);
}

#[tokio::test]
async fn the_end_of_one_message_is_not_that_of_those_received_with_it() {
    let cause = || Cause::failure("E1");
    for (release, settled, dead) in [(Release::DeadLetter { cause: cause() }, 0, 1), (Release::Discard, 1, 0)]
    {
        let broker = TestBroker::start();
        let (q, other, out) = (queue("q"), queue("other"), queue("out"));
        broker.send_numbered(&q, 4).await;
        broker.send_numbered(&other, 1).await;
        let session = broker.session(Transacted).await;
        let consumer = session.create_consumer(&q).await.unwrap();
        let others = session.create_consumer(&other).await.unwrap();
        assert_eq!(see(&others, 1).await, firsts(1..=1));
        let _m1 = next(&consumer).await;
        let m2 = next(&consumer).await;
        let _m3 = next(&consumer).await;
        send_text(&session, &out, "never").await;
        m2.release(release).await.unwrap();

        let counts = broker.counts(&q);
        assert_eq!((counts.acknowledged, counts.dead_lettered, counts.pending), (settled, dead, 3));
        assert_eq!(broker.counts(&out).enqueued, 0);
        assert_eq!(see(&consumer, 3).await, [nth("m1", 2), nth("m3", 2), first("m4")]);
        assert_eq!(see(&others, 1).await, [nth("m1", 2)]);
        session.commit().await.unwrap();
        assert_eq!((broker.counts(&q).pending, broker.counts(&other).pending), (0, 0));
    }
}

#[tokio::test]
async fn a_delay_is_that_of_the_message_it_was_asked_for() {
    let broker = TestBroker::start();
    let (q, other) = (queue("q"), queue("other"));
    broker.send_numbered(&q, 1).await;
    broker.send_numbered(&other, 1).await;
    let session = broker.session(Transacted).await;
    let (consumer, others) =
        (session.create_consumer(&q).await.unwrap(), session.create_consumer(&other).await.unwrap());
    see(&others, 1).await;
    let delay = Duration::from_secs(60);
    let m1 = next(&consumer).await;
    m1.release(Release::Redeliver { delay: Some(delay), cause: Cause::failure("later") }).await.unwrap();
    assert_eq!(see(&others, 1).await, [nth("m1", 2)], "after the delay of its own policy");
    assert_eq!(now(&consumer).await, None);
    broker.clock.advance(delay);
    assert_eq!(see(&consumer, 1).await, [nth("m1", 2)]);
}

#[tokio::test]
async fn sends_to_a_topic_are_published_by_the_commit() {
    let broker = TestBroker::start();
    let t = corriere_core::Destination::topic("t").unwrap();
    let subscriber = broker.session(Auto).await.create_consumer(&t).await.unwrap();
    let session = broker.session(Transacted).await;
    send_text(&session, &t, "m1").await;
    assert_eq!(now(&subscriber).await, None);
    session.commit().await.unwrap();
    assert_eq!(see(&subscriber, 1).await, [first("m1")]);
}

#[tokio::test]
async fn a_send_that_is_dropped_while_it_lets_others_run_makes_the_transaction_rollback_only() {
    let broker = TestBroker::start();
    let session = broker.session(Transacted).await;
    let producer = session.create_producer(Some(&queue("q"))).await.unwrap();
    let mut dropped = 0;
    for number in 1..=40 {
        let message = Message::text(format!("m{number}"));
        let mut sending = Box::pin(producer.send(&message));
        let is_ready = poll_fn(|context| Poll::Ready(sending.as_mut().poll(context).is_ready())).await;
        dropped += u32::from(!is_ready);
    }
    assert!(dropped > 0, "a sender that never waits would keep its thread");
    session.commit().await.unwrap_err();
}

#[tokio::test]
async fn a_message_that_is_rolled_back_to_its_limit_is_a_dead_letter_and_the_rest_goes_on() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 2).await;
    let session = broker.session(Transacted).await;
    let consumer = session.create_consumer_with_prefetch(&q, 1).await.unwrap();
    for count in 1..=3 {
        assert_eq!(see(&consumer, 1).await, [nth("m1", count)]);
        session.rollback().await.unwrap();
    }
    assert_eq!(see(&consumer, 1).await, [first("m2")]);
    session.commit().await.unwrap();
    assert_eq!(broker.counts(&q).dead_lettered, 1);
    assert_eq!(broker.drain(&queue("DLQ.q")).await.len(), 1);
}

#[tokio::test]
async fn what_is_sent_to_and_received_from_several_destinations_is_one_transaction() {
    let broker = TestBroker::start();
    let sources = [queue("a"), queue("b"), queue("c")];
    for source in &sources {
        broker.send_numbered(source, 1).await;
    }
    let session = broker.session(Transacted).await;
    let mut consumers = Vec::new();
    for source in &sources {
        consumers.push(session.create_consumer(source).await.unwrap());
    }
    for count in 1..=2 {
        for (number, consumer) in consumers.iter().enumerate() {
            assert_eq!(see(consumer, 1).await, [nth("m1", count)]);
            send_text(&session, &queue(&format!("out{number}")), "answer").await;
        }
        if count == 1 {
            session.rollback().await.unwrap();
        } else {
            session.commit().await.unwrap();
        }
        for (number, source) in sources.iter().enumerate() {
            let expected = if count == 1 { (1, 0) } else { (0, 1) };
            let sent = broker.counts(&queue(&format!("out{number}"))).enqueued;
            assert_eq!((broker.counts(source).pending, sent), expected);
        }
    }
}

/// Where the broker refuses the commit, what was received is given back by the client itself, without a rollback of the
/// application's.
#[tokio::test]
async fn a_consumer_that_is_closed_in_the_middle_of_a_transaction_that_fails_loses_nothing() {
    let broker = TestBroker::with(corriere_broker::Settings { memory_limit: 10_000, ..settings() });
    let (q, out) = (queue("q"), queue("out"));
    broker.send_numbered(&q, 2).await;
    let session = broker.session(Transacted).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    assert_eq!(see(&consumer, 1).await, firsts(1..=1));
    consumer.close().await.unwrap();
    session.send(&out, &Message::bytes(vec![0; 20_000]), &impatient()).await.unwrap_err();
    let error = session.commit().await.unwrap_err();
    assert!(matches!(error, Error::TransactionRolledBack { .. }), "{error:?}");
    let again = session.create_consumer(&q).await.unwrap();
    assert_eq!(see(&again, 2).await, [nth("m1", 2), first("m2")]);
    session.commit().await.unwrap();
    assert_eq!((broker.counts(&q).pending, broker.counts(&out).enqueued), (0, 0));
}

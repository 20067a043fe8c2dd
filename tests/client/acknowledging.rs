//! CLIENT sessions, and messages that are taken without being settled.

use corriere_core::AcknowledgeMode::{Auto, Client};
use corriere_core::provider::Cause;
use corriere_core::{Error, Release};

use crate::support::{TestBroker, first, firsts, next, now, nth, queue, see, send_text, within};

fn redeliver() -> Release {
    Release::Redeliver { delay: None, cause: Cause::failure("again") }
}

#[tokio::test]
async fn an_acknowledgement_covers_all_that_the_session_received_and_nothing_else() {
    let broker = TestBroker::start();
    let (q, other) = (queue("q"), queue("other"));
    let (session, neighbour) = (broker.session(Client).await, broker.session(Client).await);
    broker.send_numbered(&q, 4).await;
    broker.send_numbered(&other, 2).await;
    let neighbours = neighbour.create_consumer_with_prefetch(&other, 1).await.unwrap();
    assert_eq!(see(&neighbours, 1).await, firsts(1..=1));
    let (one, two) =
        (session.create_consumer(&q).await.unwrap(), session.create_consumer(&other).await.unwrap());
    let mut last = next(&one).await;
    for _ in 0..2 {
        last = next(&one).await;
    }
    // The neighbour's window is 1 + 1, so it may have both; what is there for this consumer is acknowledged too.
    let _ = now(&two).await;
    last.acknowledge().await.unwrap();
    assert_eq!(broker.counts(&q).acknowledged, 3);
    assert!(last.is_settled());
    neighbour.close().await.unwrap();
    session.close().await.unwrap();
    assert_eq!(
        broker.drain(&q).await,
        [first("m4")],
        "what only sat in the buffer is not covered, nor counted"
    );
}

/// C-07 (a).
#[tokio::test]
async fn a_second_acknowledgement_changes_nothing_and_the_next_one_works() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 3).await;
    let session = broker.session(Client).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let m1 = next(&consumer).await;
    for _ in 0..2 {
        within(m1.acknowledge()).await.unwrap();
        assert_eq!(broker.counts(&q).acknowledged, 1);
    }
    within(next(&consumer).await.acknowledge()).await.unwrap();
    assert_eq!(broker.counts(&q).acknowledged, 2);
    session.close().await.unwrap();
    assert_eq!(broker.drain(&q).await, [first("m3")]);
}

#[tokio::test]
async fn a_delivery_made_single_acknowledges_nothing_but_itself() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 3).await;
    let session = broker.session(Client).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let single = next(&consumer).await.into_single();
    let later = next(&consumer).await;
    for _ in 0..2 {
        within(single.acknowledge()).await.unwrap();
        assert_eq!(broker.counts(&q).acknowledged, 1);
    }
    assert!(single.is_settled() && !later.is_settled());
    session.close().await.unwrap();
    assert_eq!(broker.drain(&q).await, [nth("m2", 2), first("m3")]);
}

/// C-07 (b).
#[tokio::test]
async fn a_message_can_be_acknowledged_after_its_consumer_was_closed() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 2).await;
    let session = broker.session(Client).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let m1 = next(&consumer).await;
    consumer.close().await.unwrap();
    drop(consumer);
    assert_eq!(broker.counts(&q).in_flight, 1);
    m1.acknowledge().await.unwrap();
    session.close().await.unwrap();
    assert_eq!(broker.drain(&q).await, [first("m2")]);
}

/// C-07 (c).
#[tokio::test]
async fn an_acknowledgement_after_the_session_was_closed_is_an_error_and_the_message_comes_again() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 1).await;
    let session = broker.session(Client).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let m1 = next(&consumer).await;
    session.close().await.unwrap();
    for error in [
        within(m1.acknowledge()).await.unwrap_err(),
        within(m1.release(redeliver())).await.unwrap_err(),
        within(session.acknowledge()).await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::IllegalState { .. }), "{error:?}");
    }
    assert!(!m1.is_settled());
    assert_eq!(broker.drain(&q).await, [nth("m1", 2)]);
}

/// C-09, without a restart.
#[tokio::test]
async fn a_close_flags_what_was_handed_over_and_nothing_else() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 10).await;
    let receive = async |count| {
        let session = broker.session(Client).await;
        let consumer = session.create_consumer_with_prefetch(&q, 0).await.unwrap();
        let seen = see(&consumer, count).await;
        session.close().await.unwrap();
        seen
    };
    assert_eq!(receive(5).await, firsts(1..=5));
    let mut expected: Vec<_> = (1..=5).map(|number| nth(&format!("m{number}"), 2)).collect();
    expected.extend(firsts(6..=10));
    assert_eq!(receive(10).await, expected);
    let expected: Vec<_> =
        (1..=10).map(|number| nth(&format!("m{number}"), if number <= 5 { 3 } else { 2 })).collect();
    let session = broker.session(Client).await;
    let consumer = session.create_consumer_with_prefetch(&q, 0).await.unwrap();
    assert_eq!(see(&consumer, 10).await, expected);
    session.acknowledge().await.unwrap();
    assert_eq!((broker.counts(&q).acknowledged, broker.counts(&q).pending), (10, 0));
}

#[tokio::test]
async fn giving_back_one_message_leaves_those_that_were_taken_after_it() {
    for prefetch in [0, 10] {
        let broker = TestBroker::start();
        let q = queue("q");
        broker.send_numbered(&q, 5).await;
        let session = broker.session(Auto).await;
        let consumer = session.create_consumer_with_prefetch(&q, prefetch).await.unwrap();
        let mut taken = Vec::new();
        for _ in 0..4 {
            taken.push(within(consumer.take()).await.unwrap().unwrap());
        }
        taken[1].release(redeliver()).await.unwrap();
        assert!(taken[1].is_settled() && !taken[3].is_settled());
        for delivery in [&taken[3], &taken[0], &taken[2]] {
            delivery.acknowledge().await.unwrap();
        }
        assert_eq!(broker.counts(&q).acknowledged, 3, "prefetch {prefetch}");
        assert_eq!(see(&consumer, 2).await, [nth("m2", 2), first("m5")], "prefetch {prefetch}");
        assert_eq!(broker.counts(&q).pending, 0);
    }
}

#[tokio::test]
async fn a_message_that_is_taken_and_released_ends_as_it_was_told_to() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 4).await;
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let take = async || within(consumer.take()).await.unwrap().unwrap();
    take().await.release(Release::Discard).await.unwrap();
    take().await.release(Release::DeadLetter { cause: Cause::failure("unreadable") }).await.unwrap();
    let m3 = take().await;
    m3.release(redeliver()).await.unwrap();
    // A second word on a message does nothing.
    m3.release(Release::DeadLetter { cause: Cause::failure("unreadable") }).await.unwrap();
    m3.acknowledge().await.unwrap();
    assert_eq!(see(&consumer, 2).await, [nth("m3", 2), first("m4")]);
    let counts = broker.counts(&q);
    assert_eq!((counts.acknowledged, counts.dead_lettered, counts.pending), (3, 1, 0));
}

#[tokio::test]
async fn a_released_message_waits_for_the_delay_that_was_asked_for() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 2).await;
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let delay = std::time::Duration::from_secs(5);
    let m1 = within(consumer.take()).await.unwrap().unwrap();
    m1.release(Release::Redeliver { delay: Some(delay), cause: Cause::failure("later") }).await.unwrap();
    assert_eq!(now(&consumer).await, None, "nothing else comes to this consumer before it");
    broker.clock.advance(delay - std::time::Duration::from_millis(1));
    assert_eq!(now(&consumer).await, None);
    broker.clock.advance(std::time::Duration::from_millis(1));
    assert_eq!(see(&consumer, 2).await, [nth("m1", 2), first("m2")]);
}

#[tokio::test]
async fn an_acknowledgement_that_is_dropped_is_not_withdrawn() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 1).await;
    let session = broker.session(Client).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let m1 = next(&consumer).await;
    let mut acknowledge = Box::pin(m1.acknowledge());
    let _ = std::future::poll_fn(|cx| std::task::Poll::Ready(acknowledge.as_mut().poll(cx).is_ready())).await;
    drop(acknowledge);
    broker.until(&q, |counts| counts.acknowledged == 1).await;
}

/// C-10, the first part.
#[tokio::test]
async fn a_listener_that_recovers_every_time_gets_every_delivery_and_then_it_is_a_dead_letter() {
    let mut settings = crate::support::settings();
    settings.redelivery.maximum_redeliveries = Some(6);
    let broker = TestBroker::with(settings);
    let q = queue("q");
    let session = broker.session(Client).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let (counts, mut counted) = tokio::sync::mpsc::unbounded_channel();
    consumer
        .set_message_listener(move |delivery| {
            let counts = counts.clone();
            async move {
                counts.send(delivery.count())?;
                delivery.session().recover().await?;
                Ok(())
            }
        })
        .unwrap();
    broker.send_numbered(&q, 1).await;
    for expected in 1..=7 {
        assert_eq!(within(counted.recv()).await, Some(expected));
    }
    broker.until(&queue("DLQ.q"), |counts| counts.moved_in == 1).await;
    assert_eq!(broker.counts(&q).pending, 0);
}

/// C-10, the second part.
#[tokio::test]
async fn what_is_recovered_comes_again_in_order_before_what_waited() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Client).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    broker.send_numbered(&q, 4).await;
    assert_eq!(see(&consumer, 3).await, firsts(1..=3));
    let urgent = corriere_core::SendOptions {
        priority: Some(corriere_core::Priority::new(9).unwrap()),
        ..Default::default()
    };
    session.send(&q, &corriere_core::Message::text("m5"), &urgent).await.unwrap();
    session.recover().await.unwrap();
    let mut seen = see(&consumer, 5).await;
    seen.retain(|seen| seen.text != "m5");
    assert_eq!(seen, [nth("m1", 2), nth("m2", 2), nth("m3", 2), first("m4")]);
    session.acknowledge().await.unwrap();
    assert_eq!(broker.counts(&q).acknowledged, 5);
}

#[tokio::test]
async fn recover_gives_back_what_all_consumers_of_the_session_received() {
    let broker = TestBroker::start();
    let (q, other) = (queue("q"), queue("other"));
    broker.send_numbered(&q, 2).await;
    broker.send_numbered(&other, 2).await;
    let session = broker.session(Client).await;
    let (one, two) =
        (session.create_consumer(&q).await.unwrap(), session.create_consumer(&other).await.unwrap());
    see(&one, 1).await;
    let m1 = next(&two).await;
    session.recover().await.unwrap();
    assert!(m1.is_settled(), "its handle has no more to say");
    m1.acknowledge().await.unwrap();
    for consumer in [&one, &two] {
        assert_eq!(see(consumer, 2).await, [nth("m1", 2), first("m2")]);
    }
}

#[tokio::test]
async fn what_a_closed_consumer_received_is_recovered_for_others() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 2).await;
    let session = broker.session(Client).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    see(&consumer, 1).await;
    consumer.close().await.unwrap();
    session.recover().await.unwrap();
    let again = session.create_consumer(&q).await.unwrap();
    assert_eq!(see(&again, 2).await, [nth("m1", 2), first("m2")]);
    session.acknowledge().await.unwrap();
    assert_eq!(broker.counts(&q).pending, 0);
}

#[tokio::test]
async fn a_consumer_in_auto_recovers_nothing_that_was_received() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 2).await;
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    assert_eq!(see(&consumer, 1).await, firsts(1..=1));
    session.recover().await.unwrap();
    send_text(&session, &q, "m3").await;
    assert_eq!(see(&consumer, 2).await, firsts(2..=3));
}

//! Looking at a queue.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::provider::ProviderError;
use corriere_core::{Body, Destination, Error, Message, QueueBrowser, SendOptions};

use crate::support::{TestBroker, first, firsts, next, now, others_run, queue, send_text, within};

/// The texts and delivery counts of what a browser still shows.
async fn rest(browser: &mut QueueBrowser) -> Vec<(String, u32)> {
    let mut shown = Vec::new();
    while let Some(message) = within(browser.next()).await.unwrap() {
        let Body::Text(text) = message.body() else { panic!("{message:?}") };
        shown.push((text.as_deref().unwrap().to_owned(), message.headers().delivery_count));
    }
    shown
}

fn numbered(range: std::ops::RangeInclusive<usize>) -> Vec<(String, u32)> {
    range.map(|number| (format!("m{number}"), 1)).collect()
}

#[tokio::test]
async fn a_browser_sees_all_and_removes_none() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 5).await;
    let consumer = broker.session(Client).await.create_consumer_with_prefetch(&q, 2).await.unwrap();
    let held = next(&consumer).await;
    let session = broker.session(Auto).await;
    let mut browser = session.create_browser(&q).await.unwrap();
    assert_eq!(rest(&mut browser).await, numbered(1..=5));
    assert_eq!(within(browser.next()).await.unwrap(), None, "it stays at its end");
    drop((browser, held, consumer));
    let counts = broker.counts(&q);
    assert_eq!((counts.pending, counts.acknowledged), (5, 0));
    assert_eq!(broker.drain(&q).await.len(), 5);
}

#[tokio::test]
async fn a_browser_shows_how_often_a_message_was_delivered_and_that_it_waits() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 2).await;
    let factory = broker.factory("jms.redeliveryPolicy.initialRedeliveryDelay=60000");
    let connection = factory.create_connection().await.unwrap();
    connection.start().unwrap();
    let session = connection.create_session(Client).await.unwrap();
    let consumer = session.create_consumer(&q).await.unwrap();
    next(&consumer).await;
    session.recover().await.unwrap();
    drop((consumer, session, connection));
    let mut browser = broker.session(Auto).await.create_browser(&q).await.unwrap();
    assert_eq!(rest(&mut browser).await, [("m1".to_owned(), 2), ("m2".to_owned(), 1)]);
    assert_eq!(broker.drain(&q).await, [first("m2")]);
}

#[tokio::test]
async fn more_messages_than_its_credit_are_all_shown_and_few_are_fetched_ahead() {
    let broker = TestBroker::start();
    let q: Destination = "queue://q?consumer.prefetchSize=4".parse().unwrap();
    broker.send_numbered(&q, 50).await;
    let session = broker.session(Auto).await;
    let mut browser = session.create_browser(&q).await.unwrap();
    let consumer = broker.session(Auto).await.create_consumer_with_prefetch(&q, 100).await.unwrap();
    for _ in 0..40 {
        within(consumer.receive()).await.unwrap().unwrap();
    }
    // The four that it was sent, and what is still there.
    let mut expected = numbered(1..=4);
    expected.extend(numbered(41..=50));
    assert_eq!(rest(&mut browser).await, expected);
}

#[tokio::test]
async fn a_browser_needs_no_started_connection_and_no_queue() {
    let broker = TestBroker::start();
    broker.send_numbered(&queue("q"), 1).await;
    let connection = broker.factory("").create_connection().await.unwrap();
    let session = connection.create_session(Transacted).await.unwrap();
    assert_eq!(rest(&mut session.create_browser(&queue("q")).await.unwrap()).await, numbered(1..=1));
    assert_eq!(rest(&mut session.create_browser(&queue("none")).await.unwrap()).await, []);
    assert_eq!(broker.broker.destinations(), [queue("q")]);
    session.commit().await.unwrap();
}

#[tokio::test]
async fn a_dropped_look_loses_nothing() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 3).await;
    let session = broker.session(Auto).await;
    let mut browser = session.create_browser(&q).await.unwrap();
    let mut shown = Vec::new();
    loop {
        let look = browser.next();
        tokio::pin!(look);
        // Polled once: it has the message, or it has taken none.
        let polled = poll_fn(|cx| Poll::Ready(look.as_mut().poll(cx))).await;
        match polled {
            Poll::Ready(Ok(Some(message))) => shown.push(message),
            Poll::Ready(other) => {
                other.unwrap();
                break;
            }
            Poll::Pending => others_run().await,
        }
    }
    assert_eq!(shown.len(), 3);
}

#[tokio::test]
async fn what_expires_before_it_is_looked_at_is_left_out() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let brief = SendOptions { time_to_live: Some(Duration::from_secs(5)), ..SendOptions::default() };
    session.send(&q, &Message::text("m1"), &brief).await.unwrap();
    send_text(&session, &q, "m2").await;
    let mut browser = session.create_browser(&q).await.unwrap();
    broker.clock.advance(Duration::from_secs(6));
    assert_eq!(rest(&mut browser).await, [("m2".to_owned(), 1)]);
}

#[tokio::test]
async fn a_closed_browser_shows_nothing_more_and_its_session_goes_on() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 3).await;
    let session = broker.session(Auto).await;
    let mut browser = session.create_browser(&q).await.unwrap();
    within(browser.next()).await.unwrap().unwrap();
    browser.close().await.unwrap();
    browser.close().await.unwrap();
    let error = within(browser.next()).await.unwrap_err();
    assert_eq!(error.to_string(), "browse is not possible: the browser is closed");
    let mut other = session.create_browser(&q).await.unwrap();
    let consumer = session.create_consumer(&q).await.unwrap();
    assert_eq!(now(&consumer).await.as_deref(), Some("m1"));
    session.close().await.unwrap();
    let error = within(other.next()).await.unwrap_err();
    assert_eq!(error.to_string(), "browse is not possible: the session is closed");
    other.close().await.unwrap();
    assert!(matches!(session.create_browser(&q).await, Err(Error::IllegalState { .. })));
    assert_eq!(broker.drain(&q).await, firsts(2..=3));
}

#[tokio::test]
async fn a_browser_whose_connection_is_lost_says_so() {
    let broker = TestBroker::start();
    broker.send_numbered(&queue("q"), 1).await;
    let session = broker.session(Auto).await;
    let mut browser = session.create_browser(&queue("q")).await.unwrap();
    broker.broker.stop();
    let error = within(browser.next()).await.unwrap_err();
    assert!(matches!(error, Error::Provider(ProviderError::Lost)), "{error:?}");
    assert!(session.create_browser(&queue("q")).await.is_err());
}

#[tokio::test]
async fn a_topic_is_refused_by_name() {
    let broker = TestBroker::start();
    let session = broker.session(Auto).await;
    let error = session.create_browser(&Destination::topic("prices").unwrap()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "topic://prices cannot be used: a topic has nothing to browse; only queues have"
    );
}

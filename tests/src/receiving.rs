//! What tests of the client do with consumers, and what they look at in a delivery.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

use std::future::Future;
use std::time::{Duration, Instant};

use corriere_core::{Consumer, Delivery, Destination, Message, SendOptions, Session};

/// Beyond this a test hangs.
pub const HANG: Duration = Duration::from_secs(120);

/// What a test looks at in a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The body.
    pub text: String,
    /// `JMSXDeliveryCount`.
    pub count: u32,
    /// `JMSRedelivered`.
    pub redelivered: bool,
}

impl Seen {
    /// Of this delivery.
    #[must_use]
    pub fn of(delivery: &Delivery) -> Self {
        Self {
            text: text(delivery).to_owned(),
            count: delivery.count(),
            redelivered: delivery.headers().redelivered(),
        }
    }
}

/// A delivery of this text for the first time.
#[must_use]
pub fn first(text: &str) -> Seen {
    nth(text, 1)
}

/// The delivery of this number of this text.
#[must_use]
pub fn nth(text: &str, count: u32) -> Seen {
    Seen { text: text.to_owned(), count, redelivered: count > 1 }
}

/// First deliveries of `m<from>` to `m<to>`.
#[must_use]
pub fn firsts(numbers: std::ops::RangeInclusive<usize>) -> Vec<Seen> {
    numbers.map(|number| first(&format!("m{number}"))).collect()
}

/// The text of a text message.
#[must_use]
pub fn text(message: &Message) -> &str {
    message.as_text().unwrap().unwrap()
}

/// The queue of this name.
#[must_use]
pub fn queue(name: &str) -> Destination {
    Destination::queue(name).unwrap()
}

/// Sends a text, which must be taken.
pub async fn send_text(session: &Session, destination: &Destination, text: &str) {
    within(session.send(destination, &Message::text(text), &SendOptions::default())).await.unwrap();
}

/// The next message, which must come.
pub async fn next(consumer: &Consumer) -> Delivery {
    within(consumer.receive()).await.unwrap().expect("the consumer is open")
}

/// What is seen of the next messages, which must come.
pub async fn see(consumer: &Consumer, count: usize) -> Vec<Seen> {
    let mut seen = Vec::new();
    for _ in 0..count {
        seen.push(Seen::of(&next(consumer).await));
    }
    seen
}

/// Catches a hang.
pub fn within<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let future = Box::pin(future);
    async { tokio::time::timeout(HANG, future).await.expect("this should not hang") }
}

/// Waits for a condition; the error says what is there instead.
pub async fn eventually(what: &str, mut check: impl FnMut() -> Result<(), String>) {
    let begin = Instant::now();
    while let Err(instead) = check() {
        assert!(begin.elapsed() < HANG, "{what} did not become as wanted: {instead}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

//! The two processes of a restart: one that is killed under load, and one that starts on what it left.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::mpsc;

use super::broker::{self, Running};
use super::payload;
use super::producers::{Pattern, Sender, send_from_all};
use super::receiver::Received;
use crate::arguments::Asked;
use crate::failure::Failure;

const PRODUCERS: u32 = 64;
/// Nobody waits for longer to be killed.
const UNTIL_KILLED: Duration = Duration::from_secs(24 * 60 * 60);

/// Says when it begins to send, and sends until it is killed.
pub(super) async fn load(asked: &Asked, consumed: bool) -> Result<(), Failure> {
    let running = Running::start(&asked.directory).await?;
    let received = Received::new(PRODUCERS);
    let mut consumers = Vec::new();
    if consumed {
        consumers.push(received.attach(&running.connection, &broker::queue()?).await?);
    }
    let mut senders = Vec::new();
    for number in 0..PRODUCERS {
        senders.push(Sender::new(&running.connection, &broker::queue()?, number, Pattern::Confirmed).await?);
    }
    say(&json!({ "sending": true }))?;
    send_from_all(senders, UNTIL_KILLED, consumed.then_some(&received)).await?;
    Ok(())
}

/// Starts, and says when the first message came. Where none was left, it is one that is sent now.
pub(super) async fn first_message(asked: &Asked) -> Result<(), Failure> {
    let begin = Instant::now();
    let running = Running::start(&asked.directory).await?;
    let started = begin.elapsed();
    let session = running.connection.create_session(corriere::core::AcknowledgeMode::Auto).await?;
    let consumer = session.create_consumer(&broker::queue()?).await?;
    let (first, mut came) = mpsc::unbounded_channel();
    consumer.set_message_listener(move |delivery| {
        // Only the first is waited for.
        let _ = first.send(delivery.into_message());
        async { Ok(()) }
    })?;
    // It has a number that none of those had who were killed.
    let mut sender =
        Sender::new(&running.connection, &broker::queue()?, PRODUCERS, Pattern::Confirmed).await?;
    tokio::spawn(async move { sender.send_one(Instant::now()).await });
    let message = came.recv().await.ok_or_else(|| Failure::Received("no message came".to_owned()))?;
    let Some((header, _)) = payload::header(&message) else {
        return Err(Failure::Received("a message came that nobody sent".to_owned()));
    };
    say(&json!({
        "peer": "corriere",
        "transport": "vm",
        "persistent": true,
        "payload": payload::LENGTH,
        "producers": PRODUCERS,
        "broker_started_ms": started.as_secs_f64() * 1_000.0,
        "was_left": header.producer != PRODUCERS,
    }))?;
    std::future::pending().await
}

fn say(line: &serde_json::Value) -> Result<(), Failure> {
    let mut output = std::io::stdout();
    writeln!(output, "{line}")?;
    Ok(output.flush()?)
}

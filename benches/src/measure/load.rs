//! Producers, a queue and a consumer, measured together.

use std::time::Duration;

use serde_json::json;

use super::broker::{self, Running};
use super::payload;
use super::producers::{Pattern, Sender, send_from_all};
use super::receiver::Received;
use crate::arguments::Asked;
use crate::failure::Failure;
use crate::sides::Line;
use crate::statistics::percentile_us;

const WARM_UP: Duration = Duration::from_secs(1);

/// Sends for the time that was asked for, after a second that does not count, and waits until all has arrived.
pub(super) async fn measure(
    scenario: &str,
    asked: &Asked,
    producers: u32,
    pattern: Pattern,
) -> Result<Line, Failure> {
    let running = Running::start(&asked.directory).await?;
    let received = Received::new(producers);
    let consumer = received.attach(&running.connection, &broker::queue()?).await?;
    let mut senders = Vec::new();
    for number in 0..producers {
        senders.push(Sender::new(&running.connection, &broker::queue()?, number, pattern).await?);
    }

    let (senders, sent) = send_from_all(senders, WARM_UP, Some(&received)).await?;
    received.all(sent.messages).await?;

    let begin = std::time::Instant::now();
    let time = Duration::from_secs_f64(asked.seconds);
    let (_senders, mut sent) = send_from_all(senders, time, Some(&received)).await?;
    let sent_after = begin.elapsed();
    let (mut times, last) = received.all(sent.messages).await?;
    let seconds = sent_after.max(last.saturating_duration_since(begin)).as_secs_f64();
    consumer.close().await?;
    running.stop().await?;

    let line = json!({
        "peer": "corriere",
        "scenario": scenario,
        "api": "client",
        "transport": "vm",
        "persistent": true,
        "sync": "always",
        "payload": payload::LENGTH,
        "producers": producers,
        "connections": 1,
        "consumers": 1,
        "messages": sent.messages,
        "seconds": seconds,
        "msgs_per_s": sent.messages as f64 / seconds,
        "p50_us": percentile_us(&mut times, 0.5),
        "p99_us": percentile_us(&mut times, 0.99),
        "p999_us": percentile_us(&mut times, 0.999),
        "send_p50_us": percentile_us(&mut sent.times, 0.5),
        "send_p99_us": percentile_us(&mut sent.times, 0.99),
    });
    let serde_json::Value::Object(line) = line else { unreachable!("it is written as an object") };
    Ok(line)
}

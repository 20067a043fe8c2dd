//! One run: publish, wait until nothing is under way, count.

use std::time::{Duration, Instant};

use corriere::prelude::*;
use corriere::broker::{Broker, Counts};
use indicatif::{ProgressBar, ProgressStyle};
use thiserror::Error;
use tokio::task::JoinSet;

use crate::input::Entry;
use crate::summary::{DeadLetters, Summary};

/// Sends that wait for their confirmation at the same time, so that one sync of the journal serves many.
const IN_FLIGHT: usize = 64;
/// How often the broker's counts are looked at.
const GLANCE: Duration = Duration::from_millis(20);
/// How long a run may stand still.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why a run did not come to its end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum RunError {
    /// An order could not be published.
    #[error("cannot publish an order: {0}")]
    Publish(TemplateError),
    /// The dead letters could not be read.
    #[error("cannot read the dead letters: {0}")]
    DeadLetters(TemplateError),
    /// Nothing moves.
    #[error(
        "nothing has moved for {} s: {published} of {orders} orders are published, {waiting} of them wait on `orders`, \
         and {mails} e-mails wait on `emails`",
        PATIENCE.as_secs()
    )]
    Stalled { orders: u64, published: u64, waiting: u64, mails: u64 },
}

/// Publishes every entry in each of `rounds` rounds, waits until nothing is under way any more, and counts.
pub(crate) async fn run(app: &Application, entries: Vec<Entry>, rounds: u32) -> Result<Summary, RunError> {
    let begin = Instant::now();
    let watch = Watch::new(app, entries.len() as u64 * u64::from(rounds));
    tokio::try_join!(publish(app, entries, rounds), watch.until_done())?;
    let seconds = begin.elapsed().as_secs_f64();

    let [orders, emails] = watch.counts();
    Ok(Summary {
        orders: orders.enqueued,
        emails: emails.acknowledged,
        dead_letters: dead_letters(app).await?,
        redeliveries: orders.redelivered + emails.redelivered,
        seconds,
        orders_per_s: orders.enqueued as f64 / seconds,
    })
}

async fn publish(app: &Application, entries: Vec<Entry>, rounds: u32) -> Result<(), RunError> {
    let template: JmsTemplate = app.bean("order_template")?;
    let mut sends = JoinSet::new();
    for round in 1..=rounds {
        for entry in &entries {
            if sends.len() == IN_FLIGHT { confirmed(sends.join_next().await)?; }
            let (template, entry) = (template.clone(), entry.in_round(round));
            sends.spawn(async move { template.convert_and_send(&entry).await });
        }
    }
    while let Some(sent) = sends.join_next().await { sent??; }
    Ok(())
}

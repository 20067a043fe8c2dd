//! One run: publish, wait until nothing is under way, count.

use std::io;
use std::time::{Duration, Instant};

use corriere::broker::{Broker, Counts};
use corriere::prelude::*;
use indicatif::{ProgressBar, ProgressStyle};
use thiserror::Error;
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep;

use crate::input::Entry;
use crate::rows::InputError;
use crate::summary::{DeadLetters, Summary};

/// Sends that wait for their confirmation at the same time, so that one sync of a journal serves many.
const IN_FLIGHT: usize = 64;
/// How often the broker's counts are looked at.
const GLANCE: Duration = Duration::from_millis(20);
/// How long everything may stand still.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why a run did not come to its end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum RunError {
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Application(#[from] corriere::Error),
    #[error("cannot publish or read messages: {0}")]
    Template(#[from] TemplateError),
    #[error("a send did not come to its end: {0}")]
    Send(#[from] JoinError),
    #[error(
        "nothing has moved for {} s: {published} of {expected} orders are published, {orders} of them are still on `orders`, \
         and {emails} e-mails are still on `emails`",
        PATIENCE.as_secs()
    )]
    Stalled { expected: u64, published: u64, orders: u64, emails: u64 },
}

/// Publishes the entries in each of so many rounds, waits until nothing is under way any more, and counts.
pub(crate) async fn run(app: &Application, entries: &[Entry], rounds: u32) -> Result<Summary, RunError> {
    let begin = Instant::now();
    let expected = entries.len() as u64 * u64::from(rounds);
    let ((), Counted { orders, emails }) =
        tokio::try_join!(publish(app, entries, rounds), finish(app, expected))?;
    let seconds = begin.elapsed().as_secs_f64();
    Ok(Summary {
        orders: orders.enqueued,
        emails: emails.acknowledged,
        dead_letters: dead_letters(app).await?,
        redeliveries: orders.redelivered + emails.redelivered,
        seconds,
        orders_per_s: orders.enqueued as f64 / seconds,
    })
}

async fn publish(app: &Application, entries: &[Entry], rounds: u32) -> Result<(), RunError> {
    let template: JmsTemplate = app.bean("order_template")?;
    let mut sends = JoinSet::new();
    for round in 1..=rounds {
        for entry in entries {
            if sends.len() == IN_FLIGHT {
                sends.join_next().await.transpose()?.transpose()?;
            }
            let (template, entry) = (template.clone(), entry.in_round(round));
            sends.spawn(async move { template.convert_and_send(&entry).await });
        }
    }
    while let Some(sent) = sends.join_next().await {
        sent??;
    }
    Ok(())
}

/// What the broker has counted on the two queues.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counted {
    orders: Counts,
    emails: Counts,
}

impl Counted {
    /// Orders first: an order that is not there any more has become an e-mail or a dead letter before.
    fn now(broker: &Broker) -> Self {
        let counts = |queue| broker.counts(&queue).unwrap_or_default();
        Self { orders: counts(), emails: counts() }
    }

    fn ended(&self) -> u64 {
        self.emails.acknowledged + self.orders.dead_lettered + self.emails.dead_lettered
    }
}

/// Waits until all expected orders came and nothing is on the queues any more. How long that takes does not matter as
/// long as something moves.
async fn finish(app: &Application, expected: u64) -> Result<Counted, RunError> {
    let progress = ProgressBar::new(expected).with_style(style());
    let mut last = Counted::default();
    let mut moved = Instant::now();
    loop {
        let now = Counted::now(app.broker());
        progress.set_position(now.ended());
        if now.orders.enqueued == expected && now.orders.pending == 0 && now.emails.pending == 0 {
            progress.finish_and_clear();
            return Ok(now);
        }
        if now != last {
            (last, moved) = (now, Instant::now());
        } else if moved.elapsed() > PATIENCE {
            return Err(RunError::Stalled {
                expected,
                published: now.orders.enqueued,
                orders: now.orders.pending,
                emails: now.emails.pending,
            });
        }
        sleep(GLANCE).await;
    }
}

async fn dead_letters(app: &Application) -> Result<DeadLetters, RunError> {
    let template: JmsTemplate = app.bean("dead_letter_template")?;
    let mut dead_letters = DeadLetters::default();
    for queue in ["dead_orders", "dead_emails"] {
        while let Some(message) = template.receive_from(queue).await? {
            dead_letters
                .add(message.property::<String>("dlqDeliveryFailureCause").as_deref().unwrap_or("unknown"));
        }
    }
    Ok(dead_letters)
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:40} {pos}/{len} orders, {per_sec}, {elapsed}")
}

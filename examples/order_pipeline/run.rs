//! One run: publish, wait until nothing is under way, stop the listeners, count.

use std::fmt::Write;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use corriere::broker::Counts;
use corriere::config::UnknownDestination;
use corriere::prelude::*;
use corriere_examples::OutboxError;
use indicatif::{ProgressBar, ProgressFinish, ProgressState, ProgressStyle};
use thiserror::Error;
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep;

use crate::input::Entry;
use crate::listeners::Mailer;
use crate::rows::InputError;
use crate::summary::{DeadLetters, Summary};

/// Sends that wait for their confirmation at the same time, so that one sync of a journal serves many.
const IN_FLIGHT: usize = 64;
/// How often the broker's counts are looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// Why a run did not come to its end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum RunError {
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Corriere(#[from] Error),
    #[error(transparent)]
    Destination(#[from] UnknownDestination),
    #[error("a send did not come to its end: {0}")]
    Send(#[from] JoinError),
    #[error("the configuration has no `[broker]`, whose counts this program reports")]
    NoBroker,
    #[error("the outbox {0:?} has a name that is not UTF-8, as the configuration is")]
    OutboxName(PathBuf),
    #[error(transparent)]
    Outbox(Arc<OutboxError>),
    #[error("cannot listen for signals: {0}")]
    Signals(io::Error),
    #[error("stopped by {0} before the end")]
    Interrupted(&'static str),
    #[error("orders are not e-mails + dead letters")]
    Unbalanced,
    #[error("cannot print the summary: {0}")]
    Print(io::Error),
    #[error(
        "nothing has moved for {patience:?}: {published} of {expected} orders are published, {orders} of them are still on \
         `orders`, and {emails} e-mails are still on `emails`"
    )]
    Stalled { patience: Duration, expected: u64, published: u64, orders: u64, emails: u64 },
}

/// Publishes the entries in each of so many rounds, and waits until nothing is under way any more. Gives up when an e-mail
/// cannot be written, and when everything stands still for longer than `patience`.
pub(crate) async fn run(
    app: &Application,
    entries: &[Entry],
    rounds: u32,
    patience: Duration,
) -> Result<(), RunError> {
    let mailer: Bean<Mailer> = app.bean("mailer")?;
    let expected = entries.len() as u64 * u64::from(rounds);
    tokio::select! {
        ended = async { tokio::try_join!(publish(app, entries, rounds), finish(app, expected, patience)) } => {
            ended.map(|_| ())
        }
        error = mailer.failed() => Err(RunError::Outbox(error)),
    }
}

/// Counts what was done in that time, after what the listeners are at has come to its end.
pub(crate) async fn summary(app: &Application, elapsed: Duration) -> Result<Summary, RunError> {
    for container in app.containers() {
        container.stop().await;
    }
    let Counted { orders, emails } = Counted::now(app)?;
    let seconds = elapsed.as_secs_f64();
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
            if sends.len() == IN_FLIGHT
                && let Some(sent) = sends.join_next().await
            {
                sent??;
            }
            let (template, entry) = (template.clone(), entry.in_round(round));
            sends.spawn(async move { template.convert_and_send(&entry).await.map_err(Error::from) });
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
    fn now(app: &Application) -> Result<Self, RunError> {
        let broker = app.broker().ok_or(RunError::NoBroker)?;
        // An order leaves its queue in one step with the arrival of its e-mail, so it is seen on one of them at least.
        let orders = broker.counts(&app.destinations().queue("orders")?).unwrap_or_default();
        let emails = broker.counts(&app.destinations().queue("emails")?).unwrap_or_default();
        Ok(Self { orders, emails })
    }
}

/// Waits until all expected orders came and nothing is on the queues any more. That may take any time as long as something
/// moves.
async fn finish(app: &Application, expected: u64, patience: Duration) -> Result<(), RunError> {
    let progress = ProgressBar::new(expected).with_style(style()).with_finish(ProgressFinish::AndClear);
    let mut last = Counted::default();
    let mut moved = Instant::now();
    loop {
        let now = Counted::now(app)?;
        let Counted { orders, emails } = now;
        progress.set_position(emails.acknowledged + orders.dead_lettered + emails.dead_lettered);
        if orders.enqueued == expected && orders.pending == 0 && emails.pending == 0 {
            return Ok(());
        }
        if now != last {
            (last, moved) = (now, Instant::now());
        } else if moved.elapsed() > patience {
            let published = orders.enqueued;
            return Err(RunError::Stalled {
                patience,
                expected,
                published,
                orders: orders.pending,
                emails: emails.pending,
            });
        }
        sleep(GLANCE).await;
    }
}

/// Takes every dead letter and counts it by its cause.
async fn dead_letters(app: &Application) -> Result<DeadLetters, Error> {
    let template: JmsTemplate = app.bean("dead_letter_template")?;
    let mut dead_letters = DeadLetters::default();
    for queue in ["dead_orders", "dead_emails"] {
        while let Some(message) = template.receive_from(queue).await? {
            let cause = message.property::<String>("dlqDeliveryFailureCause").ok().flatten();
            dead_letters.add(cause.as_deref().unwrap_or("no cause"));
        }
    }
    Ok(dead_letters)
}

fn style() -> ProgressStyle {
    let rate = |state: &ProgressState, out: &mut dyn Write| {
        let rate = state.pos() as f64 / state.elapsed().as_secs_f64();
        let _ = write!(out, "{rate:.0}/s");
    };
    ProgressStyle::with_template("{bar:40.cyan/dim} {human_pos}/{human_len} orders  {rate}  {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("rate", rate)
}

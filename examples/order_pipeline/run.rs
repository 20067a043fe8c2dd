//! One run: publish, wait until nothing is under way, stop the listeners, count.

use std::fmt::Write;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use corriere::broker::Counts;
use corriere::broker::store::{StoreError, Totals};
use corriere::config::UnknownDestination;
use corriere::core::provider::ProviderError;
use corriere::prelude::*;
use corriere_examples::OutboxError;
use indicatif::{ProgressBar, ProgressFinish, ProgressState, ProgressStyle};
use thiserror::Error;
use tokio::time::sleep;

use crate::mailer::Mailer;
use crate::reader::{Input, Reader};
use crate::rows::InputError;
use crate::summary::{DeadLetters, Summary};

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
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("the broker has failed: {0}")]
    Broker(ProviderError),
    #[error("a dead letter cannot be read: {0}")]
    DeadLetter(#[from] StoreError),
    #[error("the {what} {name:?} has a name that is not UTF-8, as the configuration is")]
    Name { what: &'static str, name: PathBuf },
    #[error("cannot make a directory for the broker's messages: {0}")]
    Temporary(io::Error),
    #[error(
        "the data directory belongs to another input: it has {found}, and this is {expected}; expected the same orders and \
         `--repeat`, or another `--data`"
    )]
    OtherInput { found: String, expected: String },
    #[error(
        "the data directory has orders, and no place of a reader that sent them; expected one of this program's own"
    )]
    NoPlace,
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

impl RunError {
    /// Whether nothing was done, so that there is nothing to account for.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::OtherInput { .. } | Self::NoPlace)
    }
}

/// Publishes what of the input is not published yet, and waits until nothing is under way any more. Gives up when an e-mail
/// cannot be written, when the broker has failed, and when everything stands still for longer than `patience`.
pub(crate) async fn run(app: &Application, input: Input, patience: Duration) -> Result<(), RunError> {
    let mailer: Bean<Mailer> = app.bean("mailer")?;
    let broker = app.broker()?;
    let expected = input.orders();
    let work = async {
        let reader = Reader::open(app, input).await?;
        tokio::try_join!(reader.publish(), finish(app, expected, patience))
    };
    tokio::select! {
        ended = work => ended.map(|_| ()),
        error = mailer.failed() => Err(RunError::Outbox(error)),
        error = broker.failed() => Err(RunError::Broker(error)),
    }
}

/// Counts what was done in that time, after what the listeners are at has come to its end.
pub(crate) async fn summary(app: &Application, elapsed: Duration) -> Result<Summary, RunError> {
    let mailer: Bean<Mailer> = app.bean("mailer")?;
    mailer.give_up();
    for container in app.containers() {
        container.stop().await;
    }
    let Counted { orders, emails } = Counted::now(app)?;
    let seconds = elapsed.as_secs_f64();
    Ok(Summary {
        orders: orders.totals.enqueued,
        emails: emails.totals.acknowledged,
        dead_letters: dead_letters(app).await?,
        redeliveries: orders.counts.redelivered + emails.counts.redelivered,
        seconds,
        orders_per_s: orders.counts.enqueued as f64 / seconds,
    })
}

/// What the broker has counted on the two queues.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counted {
    orders: QueueCounts,
    emails: QueueCounts,
}

/// Of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct QueueCounts {
    /// Since the data directory was made.
    pub totals: Totals,
    /// Since the broker started.
    pub counts: Counts,
}

impl Counted {
    fn now(app: &Application) -> Result<Self, RunError> {
        // An order leaves its queue in one step with the arrival of its e-mail, so it is seen on one of them at least.
        Ok(Self { orders: QueueCounts::now(app, "orders")?, emails: QueueCounts::now(app, "emails")? })
    }
}

impl QueueCounts {
    pub(crate) fn now(app: &Application, queue: &str) -> Result<Self, RunError> {
        let broker = app.broker()?;
        let queue = app.destinations().queue(queue)?;
        Ok(Self {
            totals: broker.totals(&queue).unwrap_or_default(),
            counts: broker.counts(&queue).unwrap_or_default(),
        })
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
        let ended = emails.totals.acknowledged + orders.totals.dead_lettered + emails.totals.dead_lettered;
        progress.set_position(ended);
        let is_empty = orders.counts.pending == 0 && emails.counts.pending == 0;
        if orders.totals.enqueued == expected && is_empty {
            return Ok(());
        }
        if now != last {
            (last, moved) = (now, Instant::now());
        } else if moved.elapsed() > patience {
            return Err(RunError::Stalled {
                patience,
                expected,
                published: orders.totals.enqueued,
                orders: orders.counts.pending,
                emails: emails.counts.pending,
            });
        }
        sleep(GLANCE).await;
    }
}

/// Looks at every dead letter and counts it by its cause.
async fn dead_letters(app: &Application) -> Result<DeadLetters, RunError> {
    let broker = app.broker()?;
    let mut dead_letters = DeadLetters::default();
    for queue in ["dead_orders", "dead_emails"] {
        let mut found = broker.browse(&app.destinations().queue(queue)?);
        while let Some(message) = found.next().await {
            let cause = message?.property::<String>("dlqDeliveryFailureCause").ok().flatten();
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

//! The pipeline itself: an order comes in, an e-mail goes out.

use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;

use corriere::prelude::*;
use corriere_examples::{Outbox, OutboxError};
use serde::Deserialize;

use crate::email::Email;
use crate::input::Entry;
use crate::order::Order;

/// Confirms an order; taking the order and sending its e-mail commit together or not at all. What is no valid order is a
/// dead letter at once, as another delivery would not change it.
#[jms_listener(queue = "orders", ack = "transacted", concurrency = "2-8", send_to = "emails")]
async fn on_order(entry: Entry) -> Result<Email, ListenerError> {
    let order = Order::check(&entry).or_dead_letter()?;
    Ok(Email::confirming(&order))
}

/// Puts an e-mail into the outbox and acknowledges it only then. One that cannot be written is given back and ends the run:
/// a full disk is not the order's fault, and burying every e-mail would not make room.
#[jms_listener(queue = "emails", ack = "client", concurrency = "1-4")]
#[expect(clippy::needless_pass_by_value, reason = "a listener owns its arguments")]
fn on_email(email: Email, mailer: Bean<Mailer>) -> Result<(), ListenerError> {
    mailer.send(&email)
}

/// Where the e-mails go.
#[derive(Debug)]
pub(crate) enum Mailer {
    /// Into a directory.
    Outbox(Outbox),
    /// Nowhere: the broker's count is all that is wanted.
    Count,
}

/// `[beans.mailer]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MailerConfig {
    sink: Sink,
    outbox: PathBuf,
}

/// What becomes of e-mails.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sink {
    /// They are written into the outbox.
    Files,
    /// They are only counted.
    Count,
}

impl Sink {
    /// Its name in the configuration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Count => "count",
        }
    }
}

#[corriere::bean(type = "order_mailer")]
impl Mailer {
    fn new(config: MailerConfig) -> Result<Self, OutboxError> {
        Ok(match config.sink {
            Sink::Files => Self::Outbox(Outbox::open(config.outbox)?),
            Sink::Count => Self::Count,
        })
    }

    fn send(&self, email: &Email) -> Result<(), ListenerError> {
        let Self::Outbox(outbox) = self else { return Ok(()) };
        let mime = email.to_mime().or_dead_letter()?;
        outbox.put(&email.file_name(), &mime)?;
        Ok(())
    }

    /// Waits until an e-mail could not be written, and says why not.
    pub(crate) async fn failed(&self) -> Arc<OutboxError> {
        match self {
            Self::Outbox(outbox) => outbox.failed().await,
            Self::Count => pending().await,
        }
    }
}

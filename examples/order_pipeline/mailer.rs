//! Where e-mails go: the bean `mailer`.

use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use corriere_examples::{Outbox, OutboxError};
use serde::Deserialize;
use thiserror::Error;
use tokio::task::{JoinError, spawn_blocking};

use crate::email::{Email, EmailError};
use crate::server::{Server, ServerError};
use crate::smtp::{SmtpClient, SmtpError};

/// Where the e-mails go.
#[derive(Debug)]
pub(crate) enum Mailer {
    /// Into a directory.
    Outbox(Outbox),
    /// To a mail server.
    Smtp(SmtpClient),
    /// Nowhere: the broker's count is all that is wanted.
    Count,
}

/// `[beans.mailer]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MailerConfig {
    sink: Sink,
    outbox: PathBuf,
    /// Of the mail server; it may hold a password.
    url: String,
    /// For how many seconds a mail may be under way.
    timeout: u64,
}

/// What becomes of e-mails.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sink {
    /// They are written into the outbox.
    Files,
    /// They are handed to a mail server.
    Smtp,
    /// They are only counted.
    Count,
}

impl Sink {
    /// Its name in the configuration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Smtp => "smtp",
            Self::Count => "count",
        }
    }
}

/// A mailer that cannot begin.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum MailerError {
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    #[error(transparent)]
    Server(#[from] ServerError),
}

/// An e-mail that is not sent.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum MailError {
    #[error(transparent)]
    Email(#[from] EmailError),
    #[error(transparent)]
    Outbox(#[from] Arc<OutboxError>),
    #[error(transparent)]
    Smtp(#[from] SmtpError),
    #[error("the outbox did not come to an end: {0}")]
    Ended(#[from] JoinError),
}

impl MailError {
    /// Whether it would fail again, whenever it is tried.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Email(_) | Self::Smtp(SmtpError::Refused { .. }))
    }
}

#[corriere::bean(type = "order_mailer")]
impl Mailer {
    fn new(config: MailerConfig) -> Result<Self, MailerError> {
        Ok(match config.sink {
            Sink::Files => Self::Outbox(Outbox::open(config.outbox)?),
            Sink::Smtp => {
                Self::Smtp(SmtpClient::new(Server::parse(&config.url)?, Duration::from_secs(config.timeout)))
            }
            Sink::Count => Self::Count,
        })
    }

    /// Sends an e-mail, which is in the outbox or with the server when this returns. Sent twice it replaces itself in the
    /// outbox; a server sees by its `Message-ID` that it is the same.
    pub(crate) async fn send(&self, email: &Email) -> Result<(), MailError> {
        match self {
            Self::Outbox(outbox) => {
                let (outbox, name, mime) = (outbox.clone(), email.file_name(), email.to_mime()?);
                spawn_blocking(move || outbox.put(&name, &mime)).await??;
            }
            Self::Smtp(client) => client.send(&email.envelope()?, &email.to_mime()?).await?,
            Self::Count => {}
        }
        Ok(())
    }

    /// The program ends: what is under way to a server has a moment left.
    pub(crate) fn give_up(&self) {
        if let Self::Smtp(client) = self {
            client.give_up();
        }
    }

    /// Waits until the outbox could not take an e-mail, and says why not.
    pub(crate) async fn failed(&self) -> Arc<OutboxError> {
        match self {
            Self::Outbox(outbox) => outbox.failed().await,
            Self::Smtp(_) | Self::Count => pending().await,
        }
    }
}

//! Handing mails to a mail server.

use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lettre::address::Envelope;
use lettre::transport::smtp;
use lettre::transport::smtp::authentication::Mechanism;
use lettre::transport::smtp::client::AsyncSmtpConnection;
use lettre::transport::smtp::extension::ClientId;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::server::Server;

/// A connection that was idle for longer is not used again: servers hang up on those who say nothing.
const IDLE: Duration = Duration::from_secs(5);
/// How long a mail that is under way may take from [`SmtpClient::give_up`] on.
const GRACE: Duration = Duration::from_secs(1);

/// A client of one mail server, which keeps its connections for the next mails.
pub(crate) struct SmtpClient {
    server: Server,
    timeout: Duration,
    idle: Mutex<Vec<Idle>>,
    given_up: watch::Sender<bool>,
}

struct Idle {
    connection: AsyncSmtpConnection,
    since: Instant,
}

/// A mail that the server has not taken, as far as is known.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum SmtpError {
    /// Another try would not change it. The text before the colon is what the summary counts by.
    #[error("mail refused: {answer}")]
    Refused { answer: String },
    #[error("mail server {server}: {source}")]
    Connect { server: String, source: io::Error },
    #[error("mail server {server}: {}", one_line(source))]
    Session { server: String, source: smtp::Error },
    #[error("mail server {server}: no end within {} s", after.as_secs())]
    TooSlow { server: String, after: Duration },
    #[error("the program ends, and the mail server has not answered yet")]
    GivenUp,
}

impl SmtpClient {
    /// A client that connects at the first mail. A mail may take as long as `timeout`, connecting included.
    pub(crate) fn new(server: Server, timeout: Duration) -> Self {
        Self { server, timeout, idle: Mutex::default(), given_up: watch::Sender::new(false) }
    }

    /// Hands a mail over. It is the server's when this returns. When this fails, or is dropped, the server may have it all
    /// the same, as its answer can be lost.
    pub(crate) async fn send(&self, envelope: &Envelope, mail: &[u8]) -> Result<(), SmtpError> {
        tokio::select! {
            sent = timeout(self.timeout, self.hand_over(envelope, mail)) => sent.unwrap_or_else(|_| {
                Err(SmtpError::TooSlow { server: self.server.to_string(), after: self.timeout })
            }),
            () = self.grace_is_over() => Err(SmtpError::GivenUp),
        }
    }

    /// Fails what is not sent in a moment, and what comes later.
    pub(crate) fn give_up(&self) {
        self.given_up.send_replace(true);
    }

    async fn hand_over(&self, envelope: &Envelope, mail: &[u8]) -> Result<(), SmtpError> {
        let mut connection = match self.idle_connection() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        match connection.send(envelope, mail).await {
            Ok(_) => {
                self.idle().push(Idle { connection, since: Instant::now() });
                Ok(())
            }
            Err(error) if is_for_good(&error) => Err(SmtpError::Refused { answer: answer(&error) }),
            Err(source) => Err(self.failed(source)),
        }
    }

    /// Whatever goes wrong here is not the mail's fault, not even where the server says that it is for good.
    async fn connect(&self) -> Result<AsyncSmtpConnection, SmtpError> {
        let unreachable = |source| SmtpError::Connect { server: self.server.to_string(), source };
        let stream = TcpStream::connect((self.server.host.as_str(), self.server.port)).await;
        let stream = stream.map_err(unreachable)?;
        // The end of a mail is a short write behind a long one, which would wait for the other side's acknowledgement.
        stream.set_nodelay(true).map_err(unreachable)?;
        let connection =
            AsyncSmtpConnection::connect_with_transport(Box::new(stream), &ClientId::default()).await;
        let mut connection = connection.map_err(|source| self.failed(source))?;
        if let Some(credentials) = &self.server.credentials {
            let mechanisms = [Mechanism::Plain, Mechanism::Login];
            connection.auth(&mechanisms, credentials).await.map_err(|source| self.failed(source))?;
        }
        Ok(connection)
    }

    fn idle_connection(&self) -> Option<AsyncSmtpConnection> {
        let mut idle = self.idle();
        idle.retain(|idle| idle.since.elapsed() < IDLE);
        idle.pop().map(|idle| idle.connection)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn grace_is_over(&self) {
        // The sender is here, so the wait ends with the word only.
        let _ = self.given_up.subscribe().wait_for(|given_up| *given_up).await.is_ok();
        sleep(GRACE).await;
    }

    fn failed(&self, source: smtp::Error) -> SmtpError {
        SmtpError::Session { server: self.server.to_string(), source }
    }
}

impl fmt::Debug for SmtpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmtpClient").field("server", &self.server).finish_non_exhaustive()
    }
}

/// Whether the server refuses this mail, now and later. That it wants to know first who we are says nothing of the mail.
fn is_for_good(error: &smtp::Error) -> bool {
    const ABOUT_AUTHENTICATION: [&str; 4] = ["530", "534", "535", "538"];
    let code = error.status().map(|code| code.to_string());
    error.is_permanent() && code.is_some_and(|code| !ABOUT_AUTHENTICATION.contains(&code.as_str()))
}

/// Code and text of the server's answer.
fn answer(error: &smtp::Error) -> String {
    let code = error.status().map(|code| code.to_string()).unwrap_or_default();
    let text = std::error::Error::source(error).map(one_line).unwrap_or_default();
    format!("{code} {text}").trim_end().to_owned()
}

/// An answer may have several lines, and comes from elsewhere.
fn one_line(text: impl fmt::Display) -> String {
    text.to_string().replace(char::is_control, " ")
}

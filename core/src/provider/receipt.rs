//! The confirmation of a command.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::ProviderError;
use crate::destination::Destination;
use crate::id::Xid;

/// What a command came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Confirmation {
    /// It has taken effect, as its [`Command`](super::Command) promises.
    Done,
    /// A prepare: whether there is anything to commit.
    Prepared {
        /// False when the branch only read and is already over.
        must_commit: bool,
    },
    /// The prepared transactions.
    Recovered(Vec<Xid>),
    /// A temporary destination, as it is named.
    Created(Destination),
}

/// The outcome of a command, as a future. Dropping it withdraws nothing.
#[derive(Debug)]
#[must_use = "a receipt that nobody awaits confirms nothing; `drop` it where that is meant"]
pub struct Receipt(State);

#[derive(Debug)]
enum State {
    Ready(Option<Result<Confirmation, ProviderError>>),
    Pending(oneshot::Receiver<Result<Confirmation, ProviderError>>),
}

/// The other end of a [`Receipt`]. Dropped without a word it says that the connection was lost.
#[derive(Debug)]
pub struct Confirmer(oneshot::Sender<Result<Confirmation, ProviderError>>);

impl Receipt {
    /// A receipt whose outcome is known.
    pub fn ready(outcome: Result<Confirmation, ProviderError>) -> Self {
        Self(State::Ready(Some(outcome)))
    }

    /// A receipt and who fulfils it.
    pub fn pending() -> (Confirmer, Self) {
        let (sender, receiver) = oneshot::channel();
        (Confirmer(sender), Self(State::Pending(receiver)))
    }
}

impl Confirmer {
    /// Fulfils the receipt.
    pub fn confirm(self, outcome: Result<Confirmation, ProviderError>) {
        // Whoever dropped the receipt does not want to know.
        let _ = self.0.send(outcome);
    }
}

impl Future for Receipt {
    type Output = Result<Confirmation, ProviderError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Ready(outcome) => Poll::Ready(outcome.take().unwrap_or(Err(ProviderError::Lost))),
            State::Pending(receiver) => {
                Pin::new(receiver).poll(cx).map(|outcome| outcome.unwrap_or(Err(ProviderError::Lost)))
            }
        }
    }
}

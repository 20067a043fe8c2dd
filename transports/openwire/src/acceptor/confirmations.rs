//! What is to be done when the provider has confirmed a command.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use corriere_core::provider::{Confirmation, ProviderError, Receipt};
use corriere_core::{Destination, SubscriptionId, TransactionId};

use super::advisories::Wanted;
use super::lost::Sent;
use super::parking::Held;
use crate::codec::structures as wire;

/// By what a command is answered, if it is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) command_id: i32,
    pub(super) is_required: bool,
}

/// What is to be done then.
#[derive(Debug)]
pub(super) enum Then {
    /// Nothing but the answer.
    Answer(Answer),
    /// Keeps a producer that is there.
    ProducerOpened { key: (i64, i64), answer: Answer },
    /// Lets a consumer have its messages.
    Opened {
        subscription: SubscriptionId,
        consumer: wire::ConsumerId,
        destination: Destination,
        subscription_name: Option<Arc<str>>,
        answer: Answer,
    },
    /// Tells a consumer of the temporary destinations that there are.
    Watching { consumer: wire::ConsumerId, wanted: Wanted, answer: Answer },
    /// Acknowledges what a producer with a window has sent.
    Sent { answer: Answer, acknowledges: Option<Box<wire::ProducerAck>>, sent: Sent },
    /// Settles, or not, what a transaction acknowledged; with the reason why it could not be committed.
    Ended { transaction: TransactionId, is_commit: bool, spoilt: Option<String>, answer: Answer },
    /// Tells a consumer that there is nothing, unless something came.
    Drained { subscription: SubscriptionId },
    /// Leaves the connection.
    Closed(Answer),
}

impl Then {
    /// Whether the end of the connection waits for it, as it would come to nothing with that: a send, or a commit of sends
    /// that wait.
    pub(super) fn outlives_the_connection(&self) -> bool {
        match self {
            Self::Sent { sent, .. } => sent.transaction.is_none(),
            Self::Ended { is_commit, .. } => *is_commit,
            _ => false,
        }
    }
}

/// A command that is not confirmed yet.
#[derive(Debug)]
pub(super) struct Unconfirmed {
    receipt: Receipt,
    rest: Option<(Then, Held)>,
}

/// A command that is confirmed, or refused.
#[derive(Debug)]
pub(super) struct Confirmed {
    pub(super) then: Then,
    pub(super) held: Held,
    pub(super) outcome: Result<Confirmation, ProviderError>,
}

impl Unconfirmed {
    pub(super) fn new(receipt: Receipt, then: Then, held: Held) -> Self {
        Self { receipt, rest: Some((then, held)) }
    }
}

impl Future for Unconfirmed {
    type Output = Confirmed;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Confirmed> {
        let Poll::Ready(outcome) = Pin::new(&mut self.receipt).poll(context) else {
            return Poll::Pending;
        };
        match self.rest.take() {
            Some((then, held)) => Poll::Ready(Confirmed { then, held, outcome }),
            // It was ready before, and is asked no more.
            None => Poll::Pending,
        }
    }
}

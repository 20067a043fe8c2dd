//! Messages that were received, and their settlement.

use std::ops::Deref;
use std::time::Duration;

use tokio::task::yield_now;

use super::{AcknowledgeMode, Session};
use crate::error::Error;
use crate::id::SubscriptionId;
use crate::message::Message;
use crate::provider::{AckKind, Cause, Dispatch};

/// A received message and the handle to settle it. Clones are the same delivery.
///
/// Dropping it settles nothing: in CLIENT, INDIVIDUAL and TRANSACTED the message returns when its session is closed, recovered or
/// rolled back. A delivery keeps its session open.
#[derive(Clone, Debug)]
pub struct Delivery {
    message: Message,
    session: Session,
    subscription: SubscriptionId,
    number: u64,
    /// Whether its acknowledgement takes in nothing else.
    is_single: bool,
    /// Whether the provider, told that it was handed over, has still to hear of that.
    is_on_its_way: bool,
}

/// How a delivery that was not settled ends.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Release {
    /// To be delivered again, after the policy's delay or this one; counts.
    Redeliver {
        /// Instead of the policy's delay.
        delay: Option<Duration>,
        /// Why.
        cause: Cause,
    },
    /// To the dead letters at once.
    DeadLetter {
        /// Why.
        cause: Cause,
    },
    /// Settled without having been handled.
    Discard,
}

impl From<Release> for AckKind {
    fn from(release: Release) -> Self {
        match release {
            Release::Redeliver { delay, cause } => Self::Redelivered { delay, cause },
            Release::DeadLetter { cause } => Self::Poison { cause },
            Release::Discard => Self::Standard,
        }
    }
}

impl Delivery {
    pub(super) fn new(session: Session, dispatch: Dispatch) -> Self {
        let Dispatch { subscription, number, message, delivery_count, mark, .. } = dispatch;
        // By its mark it was noted in the call that handed it over.
        let is_on_its_way = mark.is_none() && message.headers().is_persistent();
        let message = std::sync::Arc::unwrap_or_clone(message).received(delivery_count);
        Self { message, session, subscription, number, is_single: false, is_on_its_way }
    }

    /// The same delivery, whose acknowledgement takes in nothing else of its session, in CLIENT too. This is how listener
    /// containers hand deliveries out: one that is acknowledged late must not settle what a handler is at work on.
    #[must_use]
    pub fn into_single(self) -> Self {
        Self { is_single: true, ..self }
    }

    /// Lets a provider behind a wire hear that this was handed over. For who runs handlers, before one begins: it may keep its
    /// thread, to which the task that writes may be bound, and end the process, and then the delivery is to count all the
    /// same. Dropping the future changes nothing.
    pub async fn tell_provider(&self) {
        if self.is_on_its_way {
            yield_now().await;
        }
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// The message by itself.
    #[must_use]
    pub fn into_message(self) -> Message {
        self.message
    }

    /// 1 at the first delivery.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.message.headers().delivery_count
    }

    /// The session that received it.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Whether it is settled: acknowledged, committed or released.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        !self.session.inner().is_unsettled(self.subscription, self.number)
    }

    /// Acknowledges it; does nothing to it when it is settled already.
    ///
    /// In CLIENT that takes in all that its session received before the call, as [`Session::acknowledge`] does, unless the
    /// delivery came from a listener container ([`Delivery::into_single`]). In INDIVIDUAL it is this one and no other. In AUTO
    /// and `DUPS_OK`, where [`Consumer::take`](super::Consumer::take) leaves it to be acknowledged, it is this one, which a consumer that
    /// puts acknowledgements off tells the provider later. In a transacted session it does nothing, as the commit settles.
    /// Otherwise it has taken effect when this returns; dropping the future, once it was polled, does not withdraw it.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when the session is closed (the message comes again).
    pub async fn acknowledge(&self) -> Result<(), Error> {
        let session = self.session.inner();
        session.check_usable("acknowledge")?;
        match session.mode() {
            AcknowledgeMode::Transacted => Ok(()),
            AcknowledgeMode::Client if !self.is_single => self.session.acknowledge().await,
            AcknowledgeMode::Individual => self.settle(AckKind::Individual).await,
            AcknowledgeMode::Client => self.settle(AckKind::Standard).await,
            AcknowledgeMode::Auto | AcknowledgeMode::DupsOk => {
                if let Some(receipt) = session.settle_by_itself(self.subscription, self.number) {
                    receipt.await?;
                }
                Ok(())
            }
        }
    }

    /// Ends it without success; does nothing to it when it is settled already. In a transacted session that rolls back
    /// the transaction at hand, even if this delivery was of an earlier one: everything sent in it is undone, and what
    /// else was received in it is given back, to be delivered again. Dropping the future, once it was polled, does not
    /// withdraw it.
    ///
    /// # Errors
    /// As [`Delivery::acknowledge`].
    pub async fn release(&self, release: Release) -> Result<(), Error> {
        let session = self.session.inner();
        session.check_usable("release")?;
        if session.mode() == AcknowledgeMode::Transacted {
            session.rollback_releasing(self.subscription, self.number, release.into()).await
        } else {
            self.settle(release.into()).await
        }
    }

    /// Acknowledges it in a session that does so by itself, and does not wait until that is written. If the process dies at
    /// once, the message comes again.
    pub(super) fn acknowledge_unawaited(&self) -> Result<(), Error> {
        let session = self.session.inner();
        session.check_usable("acknowledge")?;
        session.settle_unawaited(self.subscription, self.number);
        Ok(())
    }

    async fn settle(&self, kind: AckKind) -> Result<(), Error> {
        if let Some(receipt) = self.session.inner().settle_one(self.subscription, self.number, kind) {
            receipt.await?;
        }
        Ok(())
    }
}

impl Deref for Delivery {
    type Target = Message;

    fn deref(&self) -> &Message {
        &self.message
    }
}

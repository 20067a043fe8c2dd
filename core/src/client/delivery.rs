//! Messages that were received, and their settlement.

use std::ops::Deref;
use std::time::Duration;

use super::Session;
use crate::error::Error;
use crate::message::Message;
use crate::provider::Cause;

/// A received message and the handle to settle it. Clones are the same delivery.
///
/// Dropping it settles nothing: in CLIENT and TRANSACTED the message returns when its session is closed or recovered.
#[derive(Clone, Debug)]
pub struct Delivery {
    message: Message,
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

impl Delivery {
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
        todo!()
    }

    /// Whether it is settled: acknowledged, committed or released.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        todo!()
    }

    /// Acknowledges it. In CLIENT that takes in all that its session received before; in a transacted session it does
    /// nothing, as the commit settles. A second call does nothing.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when the session is closed (the message comes again).
    pub async fn acknowledge(&self) -> Result<(), Error> {
        todo!()
    }

    /// Ends it without success. In a transacted session everything sent in the transaction is undone and everything
    /// received in it shares this end.
    ///
    /// # Errors
    /// As [`Delivery::acknowledge`].
    pub async fn release(&self, _release: Release) -> Result<(), Error> {
        todo!()
    }
}

impl Deref for Delivery {
    type Target = Message;

    fn deref(&self) -> &Message {
        &self.message
    }
}

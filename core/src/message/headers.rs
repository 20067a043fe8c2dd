//! The headers of a message (Jakarta Messaging 3.1, section 3.4).

use std::sync::Arc;

use super::MessageError;
use crate::destination::Destination;
use crate::id::MessageId;
use crate::time::Timestamp;

/// Whether a message survives the end of the broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DeliveryMode {
    /// Kept by the store; lost with the process otherwise.
    #[default]
    Persistent,
    /// Held in memory only.
    NonPersistent,
}

/// How urgent a message is, 0 to 9; 4 is normal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// The priority of this level.
    ///
    /// # Errors
    /// [`MessageError::Priority`] above 9.
    pub fn new(level: u8) -> Result<Self, MessageError> {
        if level > 9 {
            return Err(MessageError::Priority { level });
        }
        Ok(Self(level))
    }

    /// 0 to 9.
    #[must_use]
    pub fn level(self) -> u8 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self(4)
    }
}

/// The headers of a message. The provider sets all but the correlation id, the reply address and the type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// `JMSDestination`: where it was sent.
    pub destination: Option<Destination>,
    /// `JMSDeliveryMode`.
    pub delivery_mode: DeliveryMode,
    /// `JMSPriority`.
    pub priority: Priority,
    /// `JMSMessageID`.
    pub message_id: Option<MessageId>,
    /// `JMSTimestamp`: when it was sent.
    pub timestamp: Timestamp,
    /// `JMSExpiration`; `None` when it never expires.
    pub expiration: Option<Timestamp>,
    /// `JMSCorrelationID`.
    pub correlation_id: Option<Arc<str>>,
    /// `JMSReplyTo`.
    pub reply_to: Option<Destination>,
    /// `JMSType`.
    pub message_type: Option<Arc<str>>,
    /// `JMSXDeliveryCount`: 1 at the first delivery, 0 on a message that was never delivered.
    pub delivery_count: u32,
}

impl Headers {
    /// `JMSRedelivered`: whether an earlier delivery was not settled.
    #[must_use]
    pub fn redelivered(&self) -> bool {
        self.delivery_count > 1
    }

    /// Whether the message is past its expiration at `now`.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expiration.is_some_and(|expiration| now >= expiration)
    }

    /// Whether the store keeps it.
    #[must_use]
    pub fn is_persistent(&self) -> bool {
        self.delivery_mode == DeliveryMode::Persistent
    }
}

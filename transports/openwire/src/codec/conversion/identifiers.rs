//! Names of both sides: messages, connections, transactions, destinations.

use corriere_core::id::Xid;
use corriere_core::{DestinationError, DestinationKind};

use super::ConversionError;
use crate::codec::structures::{
    ConnectionId, Destination, LocalTransactionId, MessageId, ProducerId, TransactionId, XaTransactionId,
};

impl MessageId {
    /// The name in core: what a client shows as `JMSMessageID`, where that is a producer and a number; else the
    /// producer's identity and the number that it gave the message.
    ///
    /// # Errors
    /// [`ConversionError::Number`] where that is negative, [`ConversionError::NoProducer`].
    pub fn to_core(&self) -> Result<corriere_core::MessageId, ConversionError> {
        if let Some(id) = self.text_view_as_id() {
            return Ok(id);
        }
        let producer = self.producer_id.as_ref().ok_or(ConversionError::NoProducer)?;
        let number = self.producer_sequence_id;
        let sequence = u64::try_from(number)
            .map_err(|_| ConversionError::Number { number: number.into(), of: "message" })?;
        Ok(corriere_core::MessageId { producer: producer.to_string().into(), sequence })
    }

    /// The name on the wire. One whose producer has not ActiveMQ's shape stands there as text, which peers of version 9
    /// do not see; they tell such messages apart by the producer and the number.
    ///
    /// # Errors
    /// [`ConversionError::Number`] where the wire has no room for it.
    pub fn from_core(id: &corriere_core::MessageId) -> Result<Self, ConversionError> {
        let producer_sequence_id = i64::try_from(id.sequence)
            .map_err(|_| ConversionError::Number { number: id.sequence.into(), of: "message" })?;
        let (text_view, producer_id) = id.producer.parse::<ProducerId>().map_or_else(
            |_| {
                let connection_id = id.producer.clone();
                (Some(id.to_string().into()), ProducerId { connection_id, ..ProducerId::default() })
            },
            |producer| (None, producer),
        );
        Ok(Self { text_view, producer_id: Some(producer_id), producer_sequence_id, broker_sequence_id: 0 })
    }

    pub(super) fn text_view_as_id(&self) -> Option<corriere_core::MessageId> {
        self.text_view.as_ref().and_then(|_| self.to_string().parse().ok())
    }
}

impl ConnectionId {
    /// The name in core.
    #[must_use]
    pub fn to_core(&self) -> corriere_core::ConnectionId {
        corriere_core::ConnectionId::foreign(&self.value)
    }
}

impl From<&corriere_core::ConnectionId> for ConnectionId {
    fn from(id: &corriere_core::ConnectionId) -> Self {
        Self { value: id.as_str().into() }
    }
}

impl TransactionId {
    /// The name in core, where the connection of a local one is known from where it came.
    ///
    /// # Errors
    /// [`ConversionError::Number`] where that is negative.
    pub fn to_core(&self) -> Result<corriere_core::TransactionId, ConversionError> {
        match self {
            Self::Local(id) => u64::try_from(id.value)
                .map(corriere_core::TransactionId::Local)
                .map_err(|_| ConversionError::Number { number: id.value.into(), of: "transaction" }),
            Self::Xa(id) => Ok(corriere_core::TransactionId::Distributed(Xid {
                format: id.format_id,
                global: id.global_transaction_id.clone().unwrap_or_default(),
                branch: id.branch_qualifier.clone().unwrap_or_default(),
            })),
        }
    }

    /// The name on the wire; a local one is one of `connection`.
    ///
    /// # Errors
    /// [`ConversionError::Number`] where the wire has no room for it.
    pub fn from_core(
        id: &corriere_core::TransactionId,
        connection: &ConnectionId,
    ) -> Result<Self, ConversionError> {
        match id {
            corriere_core::TransactionId::Local(number) => {
                let value = i64::try_from(*number)
                    .map_err(|_| ConversionError::Number { number: (*number).into(), of: "transaction" })?;
                Ok(Self::Local(LocalTransactionId { value, connection_id: connection.clone() }))
            }
            corriere_core::TransactionId::Distributed(xid) => Ok(Self::Xa(XaTransactionId {
                format_id: xid.format,
                global_transaction_id: Some(xid.global.clone()),
                branch_qualifier: Some(xid.branch.clone()),
            })),
        }
    }
}

impl Destination {
    /// The destination in core.
    ///
    /// # Errors
    /// Several in one, a pattern, and whatever else is no destination there.
    pub fn to_core(&self) -> Result<corriere_core::Destination, DestinationError> {
        match self.kind {
            DestinationKind::Queue => corriere_core::Destination::queue(&self.physical_name),
            DestinationKind::Topic => corriere_core::Destination::topic(&self.physical_name),
            kind @ (DestinationKind::TemporaryQueue | DestinationKind::TemporaryTopic) => {
                corriere_core::Destination::temporary(kind, &self.physical_name)
            }
        }
    }
}

impl From<&corriere_core::Destination> for Destination {
    fn from(destination: &corriere_core::Destination) -> Self {
        Self::new(destination.kind(), destination.name())
    }
}

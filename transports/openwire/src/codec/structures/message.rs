//! Messages (OpenWire, section 5.1, types 23 to 29).

use bytes::Bytes;

use super::{BrokerId, ConsumerId, Destination, MessageId, ProducerId, Text, TransactionId};
use crate::codec::error::{DecodeError, EncodeError};
use crate::codec::loose::{Fields, Nested, Reader, Writer, describe};
use crate::codec::structure::Structure;

describe! {
    /// A message as it stands on the wire. [`conversion`](crate::conversion) makes one of `corriere-core` of it.
    fields Message beside {
        /// What its body is; the structure's type says so.
        kind: MessageKind,
        /// Where the body is; written for [`MessageKind::Blob`] only.
        blob: Option<Box<Blob>>,
    } {
        /// The number that the sender gave this command, which an answer names.
        command_id: i32,
        /// Whether the sender waits for an answer.
        response_required: bool,
        /// Who sent it.
        producer_id: Option<ProducerId>,
        /// Where it was sent; the name may be of several destinations.
        destination: Option<Destination>,
        /// The transaction that it takes effect with.
        transaction_id: Option<TransactionId>,
        /// Where it was sent before a broker sent it here.
        original_destination: Option<Destination>,
        /// `JMSMessageID`.
        message_id: Option<MessageId>,
        /// The transaction that it had taken effect with before a broker sent it here.
        original_transaction_id: Option<TransactionId>,
        /// `JMSXGroupID`.
        group_id: Text,
        /// `JMSXGroupSeq`.
        group_sequence: i32,
        /// `JMSCorrelationID`.
        correlation_id: Text,
        /// `JMSDeliveryMode`.
        persistent: bool,
        /// `JMSExpiration`, in milliseconds since 1970; 0 for never.
        expiration: i64,
        /// `JMSPriority`.
        priority: i8,
        /// `JMSReplyTo`.
        reply_to: Option<Destination>,
        /// `JMSTimestamp`, in milliseconds since 1970.
        timestamp: i64,
        /// `JMSType`.
        message_type: Text,
        /// The body (OpenWire, section 7).
        content: Option<Bytes>,
        /// The properties, as a primitive map (OpenWire, section 6).
        marshalled_properties: Option<Bytes>,
        /// What an advisory message tells of.
        data_structure: Option<Structure>,
        /// The one consumer that it is for, where it is not for all.
        target_consumer_id: Option<ConsumerId>,
        /// Whether the body is compressed.
        compressed: bool,
        /// How many deliveries of it failed.
        redelivery_counter: i32,
        /// Which brokers it passed.
        broker_path: Option<Vec<BrokerId>>,
        /// When it arrived at the broker, in milliseconds since 1970.
        arrival: i64,
        /// `JMSXUserID`.
        user_id: Text,
        /// Whether another broker's bridge sent it.
        received_by_df_bridge: bool,
        /// Whether it may be dropped.
        droppable: bool,
        /// Brokers of the cluster that have it.
        cluster: Option<Vec<BrokerId>> [3..],
        /// When it came to the broker, in milliseconds since 1970.
        broker_in_time: i64 [3..],
        /// When it left the broker, in milliseconds since 1970.
        broker_out_time: i64 [3..],
        /// Whether it is the first of its group for the consumer.
        jmsx_group_first_for_consumer: bool [10..],
    }

    /// Where the body of a message is that does not carry it.
    fields Blob {
        /// Its address.
        remote_blob_url: Text,
        /// Its media type.
        mime_type: Text,
        /// Whether the broker removes it when it is done.
        deleted_by_broker: bool,
    }
}

/// What the body of a [`Message`] is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// 23, `ActiveMQMessage`: no body.
    #[default]
    Plain,
    /// 24, `ActiveMQBytesMessage`.
    Bytes,
    /// 25, `ActiveMQMapMessage`.
    Map,
    /// 26, `ActiveMQObjectMessage`.
    Object,
    /// 27, `ActiveMQStreamMessage`.
    Stream,
    /// 28, `ActiveMQTextMessage`.
    Text,
    /// 29, `ActiveMQBlobMessage`.
    Blob,
}

/// The first of the types; the others follow it in this order.
const FIRST: u8 = 23;

const KINDS: [MessageKind; 7] = [
    MessageKind::Plain,
    MessageKind::Bytes,
    MessageKind::Map,
    MessageKind::Object,
    MessageKind::Stream,
    MessageKind::Text,
    MessageKind::Blob,
];

fn kind_of(data_type: u8) -> Option<MessageKind> {
    KINDS.get(usize::from(data_type.checked_sub(FIRST)?)).copied()
}

impl Nested for Message {
    const NAME: &'static str = "Message";

    fn accepts(data_type: u8) -> bool {
        kind_of(data_type).is_some()
    }

    fn read_as(data_type: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let kind = kind_of(data_type).ok_or_else(|| reader.fault(1, Self::refusal(data_type)))?;
        let mut message = Self::read_all(reader)?;
        message.kind = kind;
        if kind == MessageKind::Blob {
            message.blob = Some(Box::new(Blob::read_all(reader)?));
        }
        Ok(message)
    }

    fn data_type(&self) -> u8 {
        FIRST + self.kind as u8
    }

    fn write_fields(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.write_all(writer)?;
        match (self.kind, &self.blob) {
            (MessageKind::Blob, Some(blob)) => blob.write_all(writer),
            (MessageKind::Blob, None) => Blob::default().write_all(writer),
            _ => Ok(()),
        }
    }

    #[cfg(test)]
    fn sample_any(source: &mut crate::codec::sample::Source) -> Self {
        let mut message = Self::sample_all(source);
        message.kind = KINDS[source.below(KINDS.len())];
        message.blob = (message.kind == MessageKind::Blob).then(|| Box::new(Blob::sample_all(source)));
        message
    }
}

/// A dispatch mostly holds one, and is small without.
impl Nested for Box<Message> {
    const NAME: &'static str = <Message as Nested>::NAME;

    fn accepts(data_type: u8) -> bool {
        Message::accepts(data_type)
    }

    fn read_as(data_type: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Message::read_as(data_type, reader).map(Self::new)
    }

    fn data_type(&self) -> u8 {
        Message::data_type(self)
    }

    fn write_fields(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        Message::write_fields(self, writer)
    }

    #[cfg(test)]
    fn sample_any(source: &mut crate::codec::sample::Source) -> Self {
        Self::new(Message::sample_any(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_type() {
        for (index, kind) in KINDS.into_iter().enumerate() {
            let message = Message { kind, ..Message::default() };
            assert_eq!(usize::from(message.data_type()), 23 + index);
            assert_eq!(kind_of(message.data_type()), Some(kind));
        }
        assert_eq!((kind_of(22), kind_of(30)), (None, None));
    }
}

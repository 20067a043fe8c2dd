//! All structures.

use crate::codec::error::{DecodeError, DecodeFault, EncodeError, EncodeFault};
use crate::codec::loose::{Described, Nested, Reader, Writer};
use crate::codec::structures::{
    BrokerId, BrokerInfo, BrokerSubscriptionInfo, ConnectionControl, ConnectionError, ConnectionId,
    ConnectionInfo, ConsumerControl, ConsumerId, ConsumerInfo, ControlCommand, DataArrayResponse,
    DataResponse, Destination, DestinationInfo, DiscoveryEvent, ExceptionResponse, FlushCommand,
    IntegerResponse, JournalQueueAck, JournalTopicAck, JournalTrace, JournalTransaction, KeepAliveInfo,
    LastPartialCommand, LocalTransactionId, Message, MessageAck, MessageDispatch,
    MessageDispatchNotification, MessageId, MessagePull, NetworkBridgeFilter, PartialCommand, ProducerAck,
    ProducerId, ProducerInfo, RemoveInfo, RemoveSubscriptionInfo, ReplayCommand, Response, SessionId,
    SessionInfo, ShutdownInfo, SubscriptionInfo, TransactionInfo, WireFormatInfo, XaTransactionId,
};

/// Makes the enum of all structures. `Message` and `Destination` are families, whose types differ.
macro_rules! structures {
    ([$($name:ident,)*] families [$($family:ident,)*]) => {
        /// Any structure that has a type of its own: what a frame holds, and what fields hold that may have any type
        /// (OpenWire, section 5).
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Structure {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name(Box<$name>),)*
            $(#[doc = concat!("See [`", stringify!($family), "`].")] $family(Box<$family>),)*
        }

        impl Structure {
            /// Its name in the specification.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => <$name as Nested>::NAME,)*
                    $(Self::$family(_) => <$family as Nested>::NAME,)*
                }
            }

            /// The name of the structures of a type.
            pub(crate) fn name_of(data_type: u8) -> Option<&'static str> {
                match data_type {
                    $($name::TYPE => Some(<$name as Nested>::NAME),)*
                    $(_ if $family::accepts(data_type) => Some(<$family as Nested>::NAME),)*
                    _ => None,
                }
            }

            fn command(&self) -> Option<(i32, bool)> {
                match self {
                    $(Self::$name(structure) => structure.command(),)*
                    Self::Message(message) => Some((message.command_id, message.response_required)),
                    Self::Destination(_) => None,
                }
            }

            /// Gives a command the number that its sender counts it by; what is no command has none.
            pub fn set_command_id(&mut self, id: i32) {
                match self {
                    $(Self::$name(structure) => structure.set_command_id(id),)*
                    Self::Message(message) => message.command_id = id,
                    Self::Destination(_) => {}
                }
            }
        }

        impl Nested for Structure {
            const NAME: &'static str = "Structure";

            fn accepts(data_type: u8) -> bool {
                Self::name_of(data_type).is_some()
            }

            fn refusal(data_type: u8) -> DecodeFault {
                DecodeFault::UnknownType { data_type }
            }

            fn read_as(data_type: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                match data_type {
                    $($name::TYPE if $name::is_in(reader.version()) => {
                        Nested::read_as(data_type, reader).map(Box::new).map(Self::$name)
                    })*
                    $(_ if $family::accepts(data_type) => {
                        Nested::read_as(data_type, reader).map(Box::new).map(Self::$family)
                    })*
                    _ => Err(reader.fault(1, Self::refusal(data_type))),
                }
            }

            fn data_type(&self) -> u8 {
                match self {
                    $(Self::$name(_) => $name::TYPE,)*
                    $(Self::$family(structure) => structure.data_type(),)*
                }
            }

            fn write_fields(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
                match self {
                    $(Self::$name(_) if !$name::is_in(writer.version()) => {
                        Err(EncodeError::new(EncodeFault::Version { version: writer.version() }))
                    })*
                    $(Self::$name(structure) => structure.write_fields(writer),)*
                    $(Self::$family(structure) => structure.write_fields(writer),)*
                }
            }

            #[cfg(test)]
            fn sample_any(source: &mut crate::codec::sample::Source) -> Self {
                let known: Vec<fn(&mut crate::codec::sample::Source) -> Self> = vec![
                    $(|source| Self::$name(Box::new(Nested::sample_any(source))),)*
                    $(|source| Self::$family(Box::new(Nested::sample_any(source))),)*
                ];
                match known[source.below(known.len())](source) {
                    // Another one for what this version does not have.
                    $(Self::$name(_) if !$name::is_in(source.version()) => {
                        Self::KeepAliveInfo(Box::default())
                    })*
                    picked => picked,
                }
            }
        }

        $(impl From<$name> for Structure {
            fn from(structure: $name) -> Self {
                Self::$name(Box::new(structure))
            }
        })*

        $(impl From<$family> for Structure {
            fn from(structure: $family) -> Self {
                Self::$family(Box::new(structure))
            }
        })*
    };
}

structures! {
    [
        WireFormatInfo,
        BrokerInfo,
        ConnectionInfo,
        SessionInfo,
        ConsumerInfo,
        ProducerInfo,
        TransactionInfo,
        DestinationInfo,
        RemoveSubscriptionInfo,
        KeepAliveInfo,
        ShutdownInfo,
        RemoveInfo,
        ControlCommand,
        FlushCommand,
        ConnectionError,
        ConsumerControl,
        ConnectionControl,
        ProducerAck,
        MessagePull,
        MessageDispatch,
        MessageAck,
        Response,
        ExceptionResponse,
        DataResponse,
        DataArrayResponse,
        IntegerResponse,
        DiscoveryEvent,
        JournalTopicAck,
        JournalQueueAck,
        JournalTrace,
        JournalTransaction,
        SubscriptionInfo,
        PartialCommand,
        LastPartialCommand,
        ReplayCommand,
        MessageDispatchNotification,
        NetworkBridgeFilter,
        BrokerSubscriptionInfo,
        MessageId,
        LocalTransactionId,
        XaTransactionId,
        ConnectionId,
        SessionId,
        ConsumerId,
        ProducerId,
        BrokerId,
    ]
    families [Message, Destination,]
}

impl Structure {
    /// The number by which its sender counts it, which an answer names; `None` for what is no command.
    #[must_use]
    pub fn command_id(&self) -> Option<i32> {
        self.command().map(|(id, _)| id)
    }

    /// Whether its sender waits for an answer.
    #[must_use]
    pub fn response_required(&self) -> bool {
        self.command().is_some_and(|(_, required)| required)
    }
}

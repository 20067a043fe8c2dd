//! The commands and structures of OpenWire (section 5), each by its description.
//!
//! Names are the specification's, in Rust's spelling. An `Option` is what may be null on the wire. Where a field holds one
//! of a family (a destination, a transaction id, a message), the type says which one it is.

mod broker;
mod codes;
mod connection;
mod control;
mod destination;
mod dispatch;
mod identifiers;
mod journal;
mod message;
mod password;
mod response;
mod subscription;
mod throwable;
mod transaction;
mod wire_format_info;

use std::sync::Arc;

pub use broker::{BrokerInfo, BrokerSubscriptionInfo, DiscoveryEvent, NetworkBridgeFilter};
pub use codes::{AckType, DestinationOperation, TransactionOperation};
pub use connection::{
    ConnectionInfo, DestinationInfo, ProducerInfo, RemoveInfo, RemoveSubscriptionInfo, SessionInfo,
};
pub use control::{
    ConnectionControl, ConnectionError, ConsumerControl, ControlCommand, FlushCommand, KeepAliveInfo,
    LastPartialCommand, PartialCommand, ProducerAck, ReplayCommand, ShutdownInfo,
};
pub use destination::Destination;
pub use dispatch::{MessageAck, MessageDispatch, MessageDispatchNotification, MessagePull};
pub use identifiers::{
    BrokerId, ConnectionId, ConsumerId, IdentifierError, MessageId, ProducerId, SessionId,
};
pub use journal::{JournalQueueAck, JournalTopicAck, JournalTrace, JournalTransaction};
pub use message::{Blob, Message, MessageKind};
pub use response::{DataArrayResponse, DataResponse, ExceptionResponse, IntegerResponse, Response};
pub use subscription::{ConsumerInfo, SubscriptionInfo};
pub use throwable::{JavaException, StackTraceElement, Throwable};
pub use transaction::{LocalTransactionId, TransactionId, TransactionInfo, XaTransactionId};
pub use wire_format_info::{Magic, WireFormatInfo};

/// A text that may be null. Its modified UTF-8 takes 65,535 bytes at most.
pub type Text = Option<Arc<str>>;

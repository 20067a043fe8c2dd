//! Corriere's lowest floor: the vocabulary of messaging ([`message`], [`destination`], [`id`], [`time`]), the seam to
//! a provider ([`provider`]) and the client that talks across it ([`client`]).
//!
//! The client knows only the seam; no provider, container or wire is named here.

pub mod client;
pub mod destination;
mod destination_pattern;
pub mod error;
pub mod id;
pub mod message;
pub mod nearest;
pub mod panic;
pub mod provider;
pub mod redelivery;
mod text;
pub mod time;
pub mod url_option;
pub mod user_info;

pub use client::{
    AcknowledgeMode, Connection, ConnectionFactory, Consumer, ConsumerOptions, Delivery, Producer,
    QueueBrowser, Release, SendOptions, Session, SlowConsumer, TemporaryDestination, with_session,
    with_session_sync,
};
pub use destination::{Destination, DestinationError, DestinationKind};
pub use destination_pattern::{DestinationPattern, PatternError};
pub use error::Error;
pub use id::{ConnectionId, MessageId, ProducerId, SessionId, SubscriptionId, TransactionId, Xid};
pub use message::{Body, DeliveryMode, Headers, Message, MessageError, Priority, Properties, Value};
pub use redelivery::{RedeliveryOverrides, RedeliveryPolicy};
pub use time::{Clock, Timestamp};

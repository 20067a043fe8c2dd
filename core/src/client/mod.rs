//! The client: connection factory, connection, session, producer, consumer (Jakarta Messaging 3.1, chapters 6 to 8).

mod buffer;
mod connection;
mod consumer;
mod delivery;
mod factory;
mod handler;
mod listener;
mod producer;
mod session;
mod url;

pub use connection::Connection;
pub use consumer::{Consumer, Messages};
pub use delivery::{Delivery, Release};
pub use factory::ConnectionFactory;
pub use handler::{with_session, with_session_sync};
pub use listener::ListenerFailure;
pub use producer::{Producer, SendOptions};
pub use session::{AcknowledgeMode, Session};
pub use url::UrlError;

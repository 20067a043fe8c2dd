//! The client: connection factory, connection, session, producer, consumer (Jakarta Messaging 3.1, chapters 6 to 8).

mod connection;
mod consumer;
mod delivery;
mod factory;
mod producer;
mod session;
mod url;

pub use connection::Connection;
pub use consumer::Consumer;
pub use delivery::{Delivery, Release};
pub use factory::ConnectionFactory;
pub use producer::{Producer, SendOptions};
pub use session::{AcknowledgeMode, Session};
pub use url::UrlError;

//! The client: connection factory, connection, session, producer, consumer (Jakarta Messaging 3.1, chapters 6 to 8).

mod browser;
mod buffer;
mod connection;
mod consumer;
mod delivery;
mod factory;
mod handler;
mod listener;
mod names;
mod producer;
mod receiver;
mod session;
mod slow_consumer;
mod temporary;
mod url;

pub use browser::QueueBrowser;
pub use connection::Connection;
pub use consumer::{Consumer, Messages};
pub use delivery::{Delivery, Release};
pub use factory::ConnectionFactory;
pub use handler::{with_session, with_session_sync};
pub use listener::ListenerFailure;
pub use names::name_fault;
pub use producer::{Producer, SendOptions};
pub use session::{AcknowledgeMode, ConsumerOptions, Session};
pub use slow_consumer::SlowConsumer;
pub use temporary::TemporaryDestination;
pub use url::UrlError;

use crate::error::Error;
use crate::provider::{ProviderError, Receipt};

/// Waits for the confirmation of a close. What is gone already, with its session or connection, is closed.
async fn confirm_close(receipt: Receipt) -> Result<(), Error> {
    match receipt.await {
        Ok(_) | Err(ProviderError::Unknown { .. }) => Ok(()),
        Err(error) if error.ends_connection() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

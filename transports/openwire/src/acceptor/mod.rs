//! The acceptor: serves any provider to peers that speak OpenWire.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use corriere_core::provider::Provider;
//! # use corriere_openwire::acceptor::{Acceptor, AcceptorOptions};
//! # async fn serve(broker: Arc<dyn Provider>) -> Result<(), Box<dyn std::error::Error>> {
//! let options = AcceptorOptions { broker_name: "local".into(), ..AcceptorOptions::default() };
//! let acceptor = Acceptor::bind("tcp://127.0.0.1:61616?maximumConnections=1000", broker, options).await?;
//! println!("listening on {}", acceptor.url());
//! // ...
//! acceptor.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! Each socket has two tasks. One reads commands and submits them to the provider, and answers what the provider confirms
//! (`connection.rs`, then one file for each kind of command). The other writes: answers, and the deliveries that the sink
//! puts into the outbox (`deliveries.rs`). A message id in an acknowledgement becomes the number of a delivery by the ledger
//! of its consumer (`ledger.rs`).

mod accepting;
mod acknowledging;
mod address;
mod advisories;
mod commands;
mod confirmations;
mod connection;
mod consumers;
mod deliveries;
mod durable;
mod ending;
mod exceptions;
mod ledger;
mod lost;
mod not_listening;
mod parking;
mod pulls;
mod registry;
mod sending;
mod sessions;
mod temporary;
mod transactions;
mod unwritable;
mod windows;
mod writing;

pub use accepting::{Acceptor, AcceptorOptions};
pub use address::BindError;
pub use not_listening::why_not_listening;
pub use parking::Bounds;

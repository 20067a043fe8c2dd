//! Corriere's broker: a provider. Its delivery logic is the pure state machine of [`machine`]; [`Broker`] is the
//! edge around it, which has the clock, the store and the connections.

mod broker;
mod browse;
mod connection;
mod counts;
mod edge;
pub mod files;
pub mod journal;
pub mod machine;
mod operation_counts;
mod policy;
mod queue_handle;
mod registry;
mod settings;
pub mod store;
mod subscriptions;

pub use broker::{Broker, StartError};
pub use browse::Browse;
pub use counts::Counts;
pub use operation_counts::OperationCounts;
pub use policy::DestinationPolicy;
pub use queue_handle::{QueueError, QueueHandle, all};
pub use settings::{DeadLetters, Settings};
pub use subscriptions::DurableSubscription;

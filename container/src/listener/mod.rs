//! Listeners: what `#[jms_listener]` defines, what their functions may take and return, and how they fail.

mod acknowledge;
mod blocking;
mod concurrency;
pub(crate) mod current;
mod definition;
mod error;
mod from_delivery;
mod header;
mod invocation;
mod nothing;
mod outcome;
mod probe;
mod reply;

pub use acknowledge::{Acknowledge, AcknowledgeError};
pub(crate) use blocking::ListenerThread;
pub use blocking::call_blocking;
pub use concurrency::{Concurrency, ConcurrencyError};
pub use definition::{ListenerDef, ListenerDestination, ListenerRegistration};
pub use error::{Disposition, IntoListenerError, ListenerError, OrListenerError, secs};
pub use from_delivery::{FromDelivery, Payload, via};
pub use header::{Header, HeaderKey};
pub use invocation::{BoxFuture, Invocation};
pub use outcome::{IntoOutcome, Outcome, returned};
pub use probe::{ChosenKind, ChosenWay, Kind, NoBody, NoContext, PlainReturn, Probe, Returns, Way};
pub use reply::{IntoReply, Reply};

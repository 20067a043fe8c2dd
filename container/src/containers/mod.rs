//! Listener containers: the workers that receive for a listener, run it and settle what it was given.
//!
//! A [`ListenerContainer`] has one connection (`connector`) and a number of workers (`worker`), each with a session
//! and a consumer of its own. What the workers know of each other is in the `pool`. One delivery goes through
//! `run`: call the listener, send its reply, settle.

mod connector;
mod container;
mod drain;
mod error;
mod observer;
mod pool;
mod run;
mod settings;
mod shared;
mod status;
mod worker;

pub use container::ListenerContainer;
pub use error::ContainerError;
pub use observer::{DeliveryEnd, DeliveryObserver, EndKind, SlowListener};
pub use settings::ContainerSettings;
pub use status::{Abandoned, ContainerState, ContainerStatus, StopReport};

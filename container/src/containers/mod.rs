//! Listener containers: the workers that receive for a listener, run it and settle what it was given.

mod container;
mod error;
mod observer;
mod settings;
mod status;

pub use container::ListenerContainer;
pub use error::ContainerError;
pub use observer::{DeliveryEnd, DeliveryObserver, EndKind};
pub use settings::ContainerSettings;
pub use status::{Abandoned, ContainerState, ContainerStatus, StopReport};

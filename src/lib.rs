//! Corriere: a declarative framework for message-driven services, with its own broker.

pub use corriere_container::beans::{Bean, BeanError, Beans};
pub use corriere_core as core;

/// Everything that a message-driven service usually names.
pub mod prelude {
    pub use corriere_container::beans::Bean;
}

/// What the attribute macros emit goes through here; nothing in it is for users.
#[doc(hidden)]
pub mod __private {
    pub use corriere_container::__private::*;
}

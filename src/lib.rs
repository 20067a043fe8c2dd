//! Corriere: a declarative framework for message-driven services, with its own broker.

pub use corriere_container::beans::{Bean, BeanError, Beans};
pub use corriere_container::{containers, header, listener};
pub use corriere_core as core;
pub use corriere_macros::jms_listener;

/// Everything that a message-driven service usually names.
pub mod prelude {
    pub use corriere_container::beans::Bean;
    pub use corriere_container::header;
    pub use corriere_container::listener::{
        FromDelivery, Header, Invocation, ListenerError, OrListenerError, Payload, Reply, secs,
    };
    pub use corriere_core::{Delivery, Headers, Message, Properties, Session};
    pub use corriere_macros::jms_listener;
    pub use serde::{Deserialize, Serialize};
}

/// What the attribute macros emit goes through here; nothing in it is for users.
#[doc(hidden)]
pub mod __private {
    pub use corriere_container::__private::*;
}

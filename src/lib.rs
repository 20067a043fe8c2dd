//! Corriere: a declarative framework for message-driven services, with its own broker.
//!
//! Functions become listeners, a template sends, a file configures, and an embedded broker carries the messages. Most
//! programs need no more than `use corriere::prelude::*;`.
//!
//! The attributes [`jms_listener`], [`bean`], [`main`] and [`test`](macro@test) are the declarative part; [`Application`] starts
//! and stops it all. [`core`] is what lies beneath: messages and destinations, connections, sessions, producers and
//! consumers, as Jakarta Messaging has them.

pub use corriere_container::application::{Application, ApplicationBuilder, Check, Error, PlannedListener};
pub use corriere_container::beans::{Bean, BeanBuildError, BeanError, Beans};
#[cfg(feature = "embedded")]
pub use corriere_container::testing;
pub use corriere_container::{application, beans, config, containers, header, listener};
pub use corriere_core as core;
pub use corriere_macros::{bean, jms_listener, main, test};
pub use corriere_templates as templates;

/// The embedded broker.
#[cfg(feature = "embedded")]
pub use corriere_broker as broker;

/// OpenWire, which ActiveMQ's clients speak.
#[cfg(feature = "openwire")]
pub use corriere_openwire as openwire;

/// What a program with listeners usually names.
///
/// `Serialize` and `Deserialize` are serde's; deriving them needs `serde` among the program's own dependencies.
pub mod prelude {
    pub use corriere_container::application::{Application, Error};
    pub use corriere_container::beans::Bean;
    pub use corriere_container::header;
    pub use corriere_container::listener::{
        FromDelivery, Header, Invocation, ListenerError, OrListenerError, Payload, Reply, secs,
    };
    #[cfg(feature = "embedded")]
    pub use corriere_container::testing::TestApp;
    pub use corriere_core::{Delivery, Headers, Message, Properties, Session};
    pub use corriere_macros::jms_listener;
    pub use corriere_templates::{JmsTemplate, ReceiveTimeout, TemplateError};
    pub use serde::{Deserialize, Serialize};
}

/// What the attribute macros emit goes through here; nothing in it is for users.
#[doc(hidden)]
pub mod __private {
    pub use corriere_container::__private::*;
}

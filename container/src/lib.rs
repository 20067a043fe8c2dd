//! Corriere's framework: listener containers, beans, configuration and the application's life.

pub mod application;
pub mod beans;
pub mod config;
pub mod containers;
pub mod listener;
mod nearest;
#[cfg(feature = "embedded")]
pub mod testing;

/// What the attribute macros emit goes through here; nothing in it is for users.
#[doc(hidden)]
pub mod __private {
    pub use inventory;

    pub use crate::application::run_main;
    pub use crate::beans::{
        ArgumentProbe, Bean, BeanArgument, BeanBuildError, BeanConstructor, BeanRequest, BeanSettings,
        BeanType, BeanWay, ChosenBeanWay, CloseProbe, Closed, ClosedAtOnce, Closing, ConstructorArgument,
        ConstructorOutput, ConverterProbe, IntoBean, MadeBean, NoBean, NoConfiguration, NoConverter,
        NotAsync,
    };
    pub use crate::listener::{
        Acknowledge, BoxFuture, ChosenKind, ChosenWay, Concurrency, FromDelivery, IntoOutcome, Invocation,
        Kind, ListenerDef, ListenerDestination, ListenerRegistration, NoBody, NoContext, Outcome,
        PlainReturn, Probe, Returns, Way, call_blocking,
    };
    #[cfg(feature = "embedded")]
    pub use crate::testing::run_test;
}

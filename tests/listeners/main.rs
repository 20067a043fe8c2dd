//! Listeners and their containers, against the embedded broker.

mod support;

mod failures;
mod observing;
mod prefetch;
mod reconnecting;
mod replies;
mod scaling;
mod settling;
mod stopping;
mod topics;

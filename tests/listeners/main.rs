//! Listeners and their containers, against the embedded broker.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

mod gathering;
mod support;

mod broker_errors;
mod every_mode;
mod failures;
mod header_names;
mod in_progress;
mod observing;
mod prefetch;
mod reconnecting;
mod replies;
mod scaling;
mod settling;
mod stopping;
mod topics;

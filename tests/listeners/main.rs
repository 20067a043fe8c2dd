//! Listeners and their containers, against the embedded broker.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

mod gathering;
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

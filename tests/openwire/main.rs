//! The acceptor on an embedded broker, spoken to over sockets with frames of the codec: one module per theme, one test per
//! hazard.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

mod acknowledging;
mod connecting;
mod failing;
mod leaving;
mod negotiation;
mod parking;
mod peer;
mod pulling;
mod server;
mod stopping;
mod talking;
mod transactions;
mod windows;

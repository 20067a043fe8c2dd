//! The acceptor on an embedded broker, spoken to over sockets with frames of the codec: one module per theme, one test per
//! hazard.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

mod acknowledging;
mod browsing;
mod connecting;
mod corriere;
mod durable;
mod ended;
mod failing;
mod frames;
mod leaving;
mod log;
mod negotiation;
mod parking;
mod peer;
mod pulling;
mod ranges;
mod resizing;
mod scripted;
mod server;
mod stopping;
mod talking;
mod temporary;
mod transactions;
mod unanswered;
mod windows;

//! The delivery logic, driven directly: no runtime, no store, and time passes when a test says so.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

mod acknowledgement;
mod back_off;
mod bodies;
mod browsing;
mod clearing;
mod commands;
mod dead_letters;
mod dispatch;
mod durable;
mod durable_moves;
mod expiry;
mod grouping;
mod management;
mod memory;
mod messages;
mod policies;
mod reading_back;
mod recovery;
mod redelivery;
mod slow_consumers;
mod store_full;
mod storing;
mod temporary;
mod topics;
mod transactions;
mod two_phase;
mod world;

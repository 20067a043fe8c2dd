//! The delivery logic, driven directly: no runtime, no store, and time passes when a test says so.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

mod acknowledgement;
mod commands;
mod dead_letters;
mod dispatch;
mod expiry;
mod memory;
mod redelivery;
mod storing;
mod topics;
mod transactions;
mod world;

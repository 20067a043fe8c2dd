//! The delivery logic, driven directly: no runtime, no store, and time passes when a test says so.

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

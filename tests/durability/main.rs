//! What survives: the client, a broker and its journal, ended in every way and started again. One module for each hazard.
//!
//! `CORRIERE_BACKLOG` says how many messages wait in the test of a long backlog, `CORRIERE_TRANSACTION` how many sends the
//! longest transaction has; without them it is some thousands.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

mod counting;
mod damage;
mod dead_letters;
mod failing_disk;
mod fidelity;
mod full_disk;
mod full_store;
mod large_bodies;
mod long_backlog;
mod long_transactions;
mod lost_checkpoint;
mod managing;
mod order;
mod places;
mod redelivery;
mod resending;
mod subscriber;
mod subscription_crashes;
mod subscriptions;
mod support;
mod topics;
mod totals;
mod unreadable;
mod unsubscribing;

//! The client and the embedded broker under load and under futures that are dropped wherever they wait.
//!
//! `CORRIERE_CASES` says how many cases each random test makes, which then take the time they take; without it they end
//! after some seconds. `CORRIERE_SEED` is where they begin. A failure says the seed of its case.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

mod crowd;
mod dropping;
mod large_transaction;
mod many_consumers;
mod support;

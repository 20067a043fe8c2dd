//! Templates on the embedded broker.

#![allow(
    clippy::unwrap_used,
    reason = "a panic is how a test fails, in its helpers too, which clippy does not know for tests"
)]

mod concurrency;
mod conversion;
mod dropped_futures;
mod expiry;
mod receive_timeouts;
mod round_trips;
mod sending;
mod support;
mod transactions;

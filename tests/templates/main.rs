//! Templates on the embedded broker.

mod concurrency;
mod conversion;
mod dropped_futures;
mod expiry;
mod receive_timeouts;
mod round_trips;
mod sending;
mod support;
mod transactions;

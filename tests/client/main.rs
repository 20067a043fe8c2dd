//! The client against an embedded broker: one module per theme, one test per hazard.
//!
//! Time is a manual clock's wherever it matters, so that nothing here sleeps for it.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

mod acknowledging;
mod back_off;
mod bodies;
mod browsing;
mod closing_from_inside;
mod connection;
mod dead_letters;
mod documented;
mod durable;
mod expiry;
mod handing_over;
mod individual;
mod listening;
mod memory;
mod misuse;
mod names;
mod no_local;
mod out_of_order;
mod overheard;
mod prefetch;
mod priority;
mod pulling;
mod putting_off;
mod receiving;
mod redelivery;
mod refused_acknowledgements;
mod slow_consumers;
mod support;
mod temporary;
mod transactions;
mod unsubscribing;
mod window;

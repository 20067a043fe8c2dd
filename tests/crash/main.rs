//! Crashes at every write and every sync of random histories, and errors of the disk: what the clients were told holds
//! afterwards, and what the store brings back is what it was asked to keep.
//!
//! `CORRIERE_SEED` chooses the histories. `CORRIERE_CASES` says how many ends of processes are played in all; without it,
//! it is every operation of a few short histories and then random ones for some seconds.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

mod asked;
mod clients;
mod crashes;
mod describe;
mod drain;
mod faults;
mod ground;
mod history;
mod ledger;
mod lies;
mod play;
mod reach;
mod standin;
mod world;

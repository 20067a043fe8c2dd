//! The broker's delivery semantics: random histories in lockstep with a model, and single cases.

mod cases;
mod describe;
mod histories;
mod ledger;
mod operations;
mod reach;
mod regressions;
mod strategies;
mod world;

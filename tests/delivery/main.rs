//! The broker's delivery semantics: random histories in lockstep with a model, and single cases.

mod cases;
mod histories;
mod operations;
mod regressions;
mod world;

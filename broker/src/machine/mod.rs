//! The delivery logic as a pure state machine: `step(now, Input) -> Effects`.
//!
//! No thread, clock, socket, file or tokio type is owned here, and no store is called: effects name work, inputs bring
//! its results. So any history can be replayed from a seed and compared with a model.

mod step;

pub use step::{BatchId, ConnectionKey, Effects, Input, Machine, Ticket};

//! The loose encoding (OpenWire, section 3): what stands on the wire, without bits apart and without a cache.
//!
//! `reader.rs` and `writer.rs` know numbers, texts and lengths, `field.rs` what kinds of fields there are, `nested.rs`
//! structures within each other, and `describe.rs` makes structures of their descriptions.

mod describe;
mod field;
mod nested;
mod reader;
mod writer;

pub(crate) use describe::describe;
pub(crate) use field::Field;
pub(crate) use nested::{Described, Fields, Nested};
pub(crate) use reader::Reader;
pub(crate) use writer::Writer;

/// How deep structures may stand within each other. ActiveMQ's own need 5.
pub(crate) const MAXIMUM_DEPTH: usize = 16;

//! Behaviour across crates: what the test binaries beside this library share.

pub mod apart;
pub mod java;
pub mod lines;
pub mod model;
pub mod random;
pub mod receiving;
pub mod wrapped;

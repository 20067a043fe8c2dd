//! A broker in this process, reached as `vm:`.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

mod driving;
mod performing;
mod reaching;
mod storing;
mod support;
mod telling;

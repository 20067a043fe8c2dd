//! What ActiveMQ's own classes wrote is read as what they meant, and written again byte by byte.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

mod conversation;
mod expected;
mod expected_messages;
mod files;
mod structures;

//! Java's programs on our broker, with ActiveMQ's own client, with Spring and without. They need a JDK and Debian's
//! `libactivemq-java` and `libspring-jms-java`, which `cargo xtask test` installs where it may.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]
#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]

mod failover;
mod java;
mod peer;
mod programs;
mod suite;

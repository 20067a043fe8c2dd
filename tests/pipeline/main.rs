//! The examples as their users run them, foremost the order pipeline: every order becomes an e-mail or a dead letter.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

mod dead_letters;
mod mail_server;
mod program;
mod readme;
mod reference;

mod aborted;
mod durable;
mod failures;
mod mails;
mod numbers;
mod small_examples;
mod smtp;

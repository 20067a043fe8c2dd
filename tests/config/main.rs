//! What a configuration may say, and what it is told when it is wrong.

#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]

mod accepted;
mod connection_factories;
mod environment;
mod listeners;
mod placeholders;
mod precedence;
mod refused;
mod secrets;

use corriere::config::{ConfigError, Configuration, Document};

/// Reads a TOML text, without an environment, with the listener `on_order` known.
fn read(text: &str) -> Result<Configuration, ConfigError> {
    Document::from_text("config.toml", text)?.read(&["on_order"])
}

/// Every error that a text is refused with, as text.
fn errors(text: &str) -> Vec<String> {
    texts(&read(text).expect_err(text))
}

fn texts(error: &ConfigError) -> Vec<String> {
    error.each().iter().map(ToString::to_string).collect()
}

//! What a configuration may say, and what it is told when it is wrong.

#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]

mod accepted;
mod check;
mod connection_factories;
mod environment;
mod listeners;
mod placeholders;
mod precedence;
mod refused;
mod secrets;
mod table;

use corriere::config::{ConfigError, Configuration, Document};

/// Reads a TOML text, without an environment, with the listener `on_order` known.
fn read(text: &str) -> Result<Configuration, ConfigError> {
    Document::from_text("config.toml", text)?.read(&["on_order"])
}

/// The first line of every error that a text is refused with.
fn errors(text: &str) -> Vec<String> {
    texts(&read(text).expect_err(text))
}

/// The first line of each error.
fn texts(error: &ConfigError) -> Vec<String> {
    error.each().iter().map(|error| error.to_string().lines().next().unwrap_or_default().to_owned()).collect()
}

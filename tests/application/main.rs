//! An application from its configuration to its stop, with the embedded broker.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]
#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]

mod bean_names;
mod bean_order;
mod beans;
mod converter_beans;
mod hearing;
mod keeping;
mod life;
mod listeners;
mod listening;
mod operating;
mod reaching;
mod shutdown;
mod stopping;
mod surviving;
mod templates_in_handlers;
mod test_harness;
mod test_harness_order;

use corriere::config::Document;
use corriere::{Application, ApplicationBuilder, Error};

/// An application of this configuration, without an environment.
fn application(text: &str) -> ApplicationBuilder {
    Application::from_document(
        Document::from_text("config.toml", text).unwrap_or_else(|error| panic!("{error}")),
    )
}

/// What a start that should fail says, one thing that is wrong after another.
async fn refused(builder: ApplicationBuilder) -> Vec<String> {
    let first_line = |text: String| text.lines().next().unwrap_or_default().to_owned();
    match builder.start().await {
        Ok(_) => panic!("it started"),
        Err(Error::Config(error)) => error.each().iter().map(|error| first_line(error.to_string())).collect(),
        Err(other) => vec![first_line(other.to_string())],
    }
}

//! Orders from two CSV files become e-mails in an outbox: publish, validate, confirm, deliver, and account for every one.
//!
//! Without arguments it runs on a sample of 320 orders, 20 of them broken. An order that is not valid ends in the dead letters
//! with its reason. The exit code is 0 only if orders = e-mails + dead letters, where orders are the messages on `orders`: one
//! for each row of the orders and one for each order that lines name and that does not exist.

mod arguments;
mod data;
mod date;
mod email;
mod input;
mod listeners;
mod mailer;
mod order;
mod reader;
mod render;
mod rows;
mod run;
mod server;
mod smtp;
mod summary;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use corriere::prelude::*;
use corriere_examples::end_signal;

use crate::arguments::Arguments;
use crate::data::Data;
use crate::reader::Input;
use crate::run::RunError;

/// A message is freed by another thread than has made it, for which the system's allocator may need a lock.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[corriere::main]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("order_pipeline: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A run that ends before its time says first what was done.
async fn run(arguments: &Arguments) -> Result<(), RunError> {
    let entries = input::read(&arguments.orders, &arguments.lines)?;
    let input = Input::new(&arguments.orders, entries, arguments.repeat);
    let signal = end_signal().map_err(RunError::Signals)?;
    let data = Data::open(arguments.data.as_deref()).map_err(RunError::Temporary)?;
    let app = start(arguments, &data).await?;
    let begin = Instant::now();
    let ended = tokio::select! {
        ended = run::run(&app, input, arguments.patience()) => ended,
        signal = signal => Err(RunError::Interrupted(signal)),
    };
    if matches!(&ended, Err(error) if error.is_refusal()) {
        app.stop().await;
        return ended;
    }
    let summary = run::summary(&app, begin.elapsed()).await;
    app.stop().await;
    let summary = summary?;
    summary.print(arguments.json, &data).map_err(RunError::Print)?;
    ended?;
    summary.is_balanced().then_some(()).ok_or(RunError::Unbalanced)
}

/// Starts the application. What the command line says comes before what the configuration says.
async fn start(arguments: &Arguments, data: &Data) -> Result<Application, RunError> {
    let mut app =
        Application::from_config(concat!(env!("CARGO_MANIFEST_DIR"), "/order_pipeline/config.toml"))?
            .set("broker.data_directory", text("data directory", data.path())?);
    if let Some(sink) = arguments.sink() {
        app = app.set("beans.mailer.sink", sink.name());
    }
    if let Some(outbox) = &arguments.outbox {
        app = app.set("beans.mailer.outbox", text("outbox", outbox)?);
    }
    if let Some(url) = &arguments.smtp {
        app = app.set("beans.mailer.url", as_it_is(url));
    }
    Ok(app.start().await?)
}

fn text(what: &'static str, path: &Path) -> Result<String, RunError> {
    path.to_str().map(as_it_is).ok_or_else(|| RunError::Name { what, name: path.to_owned() })
}

/// A text for the configuration that is no placeholder, even if it looks like one.
fn as_it_is(text: &str) -> String {
    text.replace("${", "$${")
}

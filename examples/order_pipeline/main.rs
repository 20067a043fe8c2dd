//! Orders from two CSV files become e-mails in an outbox: publish, validate, confirm, deliver, and account for every one.
//!
//! Without arguments it runs on a sample of 320 orders, 20 of them broken. An order that is not valid ends in the dead letters
//! with its reason. The exit code is 0 only if orders = e-mails + dead letters, where orders are the messages on `orders`: one
//! for each row of the orders and one for each order that lines name and that does not exist.

mod arguments;
mod date;
mod email;
mod input;
mod listeners;
mod order;
mod render;
mod rows;
mod run;
mod summary;

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use corriere::prelude::*;
use corriere_examples::end_signal;

use crate::arguments::Arguments;
use crate::run::RunError;

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
    let signal = end_signal().map_err(RunError::Signals)?;
    let app = start(arguments).await?;
    let begin = Instant::now();
    let ended = tokio::select! {
        ended = run::run(&app, &entries, arguments.repeat, arguments.patience()) => ended,
        signal = signal => Err(RunError::Interrupted(signal)),
    };
    let summary = run::summary(&app, begin.elapsed()).await;
    app.stop().await;
    let summary = summary?;
    summary.print(arguments.json).map_err(RunError::Print)?;
    ended?;
    summary.is_balanced().then_some(()).ok_or(RunError::Unbalanced)
}

async fn start(arguments: &Arguments) -> Result<Application, RunError> {
    let outbox = arguments.outbox.to_str().ok_or_else(|| RunError::OutboxName(arguments.outbox.clone()))?;
    let app = Application::from_config(concat!(env!("CARGO_MANIFEST_DIR"), "/order_pipeline/config.toml"))?
        .set("beans.mailer.sink", arguments.sink.name())
        .set("beans.mailer.outbox", outbox.replace("${", "$${")) // a path as it is, not a placeholder
        .start()
        .await?;
    Ok(app)
}

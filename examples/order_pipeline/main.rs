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

use std::fmt::Display;
use std::process::ExitCode;

use clap::Parser;
use corriere::prelude::*;

use crate::arguments::Arguments;
use crate::run::RunError;
use crate::summary::Summary;

#[corriere::main]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(summary) if summary.is_balanced() => ExitCode::SUCCESS,
        Ok(_) => fail("orders are not e-mails + dead letters"),
        Err(error) => fail(error),
    }
}

fn fail(why: impl Display) -> ExitCode {
    eprintln!("order_pipeline: {why}");
    ExitCode::FAILURE
}

async fn run(arguments: &Arguments) -> Result<Summary, RunError> {
    let entries = input::read(&arguments.orders, &arguments.lines)?;
    let app = start(arguments).await?;
    let summary = run::run(&app, &entries, arguments.repeat, arguments.patience()).await;
    app.stop().await;
    let summary = summary?;
    summary.print(arguments.json)?;
    Ok(summary)
}

async fn start(arguments: &Arguments) -> Result<Application, Error> {
    let app = Application::from_config(concat!(env!("CARGO_MANIFEST_DIR"), "/order_pipeline/config.toml"))?
        .set("beans.mailer.sink", arguments.sink.name())
        .set("beans.mailer.outbox", arguments.outbox.display().to_string())
        .start()
        .await?;
    Ok(app)
}

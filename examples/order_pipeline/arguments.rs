//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::mailer::Sink;

const ORDERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/order_pipeline/sample/orders.csv");
const LINES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/order_pipeline/sample/order_lines.csv");

/// Turns orders into e-mails and accounts for every one.
#[derive(Debug, Parser)]
#[command(name = "order_pipeline")]
pub(crate) struct Arguments {
    /// The orders, as CSV; the sample's by default.
    #[arg(long, value_name = "FILE", default_value = ORDERS, hide_default_value = true, requires = "lines")]
    pub orders: PathBuf,
    /// Their lines, as CSV; the sample's by default.
    #[arg(long, value_name = "FILE", default_value = LINES, hide_default_value = true, requires = "orders")]
    pub lines: PathBuf,
    /// Where the broker keeps its messages; a run with the same directory and input goes on where the one before it
    /// stopped. By default a fresh directory, removed at the end.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Where e-mails are written; by default what the configuration says, `target/order_pipeline/outbox`.
    #[arg(long, value_name = "DIR")]
    pub outbox: Option<PathBuf>,
    /// What becomes of e-mails; by default what the configuration says, files.
    #[arg(long, value_enum)]
    pub sink: Option<Sink>,
    /// Hand e-mails to this mail server, such as `smtp://127.0.0.1:2525`. A password is better in `SMTP_URL`, with `--sink
    /// smtp`, as all users of a machine see its command lines.
    #[arg(long, value_name = "URL", conflicts_with = "sink")]
    pub smtp: Option<String>,
    /// How often the input is published, each time under other order numbers.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// After how many seconds in which nothing moves the run is given up. An e-mail that failed often waits for half a
    /// minute.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    patience: u64,
    /// Print the summary as JSON.
    #[arg(long)]
    pub json: bool,
}

impl Arguments {
    /// How long everything may stand still.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs(self.patience)
    }

    /// What is to become of e-mails, if the command line says so.
    pub(crate) fn sink(&self) -> Option<Sink> {
        self.sink.or(self.smtp.is_some().then_some(Sink::Smtp))
    }
}

//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::listeners::Sink;

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
    /// Where e-mails are written.
    #[arg(long, value_name = "DIR", default_value = "target/order_pipeline/outbox")]
    pub outbox: PathBuf,
    /// What becomes of e-mails.
    #[arg(long, value_enum, default_value_t = Sink::Files)]
    pub sink: Sink,
    /// How often the input is published, each time under other order numbers.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// After how many seconds in which nothing moves the run is given up.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
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
}

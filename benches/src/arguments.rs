//! The command line.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};

use crate::measure::What;
use crate::rows;

/// Measures the broker on its journal beside what the disk can do and another broker, and prints one table.
#[derive(Debug, Parser)]
#[command(name = "figures", args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    /// Only these rows of the table.
    #[arg(long, value_name = "ROW", value_parser = PossibleValuesParser::new(rows::names()))]
    pub only: Vec<String>,
    /// The rows over OpenWire instead of the table: ActiveMQ's own client against ActiveMQ and against us.
    #[arg(long)]
    pub wire: bool,
    /// How many rounds must be valid. As many again are tried four times when the disk is not steady.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// How long each measurement takes, in seconds: 3 by default, and 60 before the kill whose restart is measured.
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<f64>,
    /// Where the files are: on the disk that is to be measured. What is made there is removed at the end.
    #[arg(long, value_name = "DIR", default_value = "target/benches")]
    pub directory: PathBuf,
    /// The folder with `orders.csv` and `order_lines.csv` for the order pipeline; its own sample by default.
    #[arg(long, value_name = "DIR", env = "CORRIERE_ORDERS_DIR")]
    pub orders: Option<PathBuf>,
    /// Where each measurement goes too, as one line of JSON at the end of the file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    #[command(subcommand)]
    pub task: Option<Task>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Makes one measurement in this process and prints it as a line of JSON.
    Measure(Asked),
}

/// One measurement.
#[derive(Debug, Args)]
pub(crate) struct Asked {
    #[arg(value_enum)]
    pub what: What,
    /// Where the files are.
    #[arg(long, value_name = "DIR")]
    pub directory: PathBuf,
    /// How long it takes.
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    pub seconds: f64,
}

//! One side of a round: a program that measures and prints one line of JSON.

mod restart;
mod started;
mod wire;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Map, Value};
use tempfile::TempDir;

use crate::arguments::Arguments;
use crate::directory;
use crate::failure::Failure;
use crate::measure::What;

/// What a side measured, by the names that the peers' lines have.
pub(crate) type Line = Map<String, Value>;

/// One side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// This program, in a process of its own.
    Measure(What),
    /// ActiveMQ in this scenario.
    ActiveMq(&'static str),
    /// Our broker in a scenario of ActiveMQ's client.
    Served(&'static str),
    /// The example, built beside this program.
    OrderPipeline,
    /// A program that fills a journal until it is killed, and another that starts on it.
    Restart {
        /// Whether a consumer takes what is sent.
        consumed: bool,
    },
}

/// Where and how long everything is measured.
#[derive(Debug)]
pub(crate) struct Context {
    directory: TempDir,
    seconds: Option<f64>,
    orders: Option<PathBuf>,
}

const SECONDS: f64 = 3.0;
const SECONDS_BEFORE_KILL: f64 = 60.0;
/// Before ActiveMQ is measured: Java gets faster while it runs.
const ACTIVEMQ_WARM_UP: &str = "4";

impl Context {
    pub(crate) fn new(arguments: &Arguments) -> Result<Self, Failure> {
        Ok(Self {
            directory: directory::fresh(&arguments.directory)?,
            seconds: arguments.seconds,
            orders: arguments.orders.clone(),
        })
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }
}

impl Side {
    /// Measures once, in a directory of its own.
    pub(crate) fn run(self, context: &Context, round: u32) -> Result<Line, Failure> {
        let directory = directory::fresh(context.directory())?;
        let directory = directory.path();
        let seconds = context.seconds.unwrap_or(SECONDS);
        match self {
            Self::Measure(what) => line_of(&mut measuring(what, directory, seconds)?),
            Self::ActiveMq(scenario) => line_of(&mut activemq(scenario, directory, seconds, round)),
            Self::Served(scenario) => wire::measure(scenario, directory, seconds, round),
            Self::OrderPipeline => order_pipeline(context, directory),
            Self::Restart { consumed } => {
                restart::measure(consumed, directory, context.seconds.unwrap_or(SECONDS_BEFORE_KILL))
            }
        }
    }

    /// The field that counts for most bars.
    pub(crate) fn rate_field(self) -> &'static str {
        match self {
            Self::Measure(What::Start) => "start_s",
            Self::Measure(what) if what.is_limit() => "per_s",
            Self::Measure(_) | Self::ActiveMq(_) | Self::Served(_) => "msgs_per_s",
            Self::OrderPipeline => "orders_per_s",
            Self::Restart { .. } => "first_message_s",
        }
    }
}

fn measuring(what: What, directory: &Path, seconds: f64) -> Result<Command, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["measure", &what.name(), "--seconds", &seconds.to_string(), "--directory"]).arg(directory);
    Ok(command)
}

fn activemq(scenario: &str, directory: &Path, seconds: f64, round: u32) -> Command {
    let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/peers/activemq/run.sh"));
    command
        .args(["--seconds", &seconds.to_string(), "--warmup", ACTIVEMQ_WARM_UP, "--run", &round.to_string()])
        .arg(scenario)
        .env("BENCH_DIR", directory);
    command
}

fn order_pipeline(context: &Context, directory: &Path) -> Result<Line, Failure> {
    let program = std::env::current_exe()?.with_file_name("examples").join("order_pipeline");
    if !program.exists() {
        return Err(Failure::Missing {
            what: program.display().to_string(),
            hint: "build it with `cargo build --release --example order_pipeline`, or run `cargo xtask bench`",
        });
    }
    let mut command = Command::new(program);
    command.args(["--repeat", "20", "--sink", "count", "--json", "--data"]).arg(directory.join("data"));
    if let Some(orders) = &context.orders {
        command.arg("--orders").arg(orders.join("orders.csv"));
        command.arg("--lines").arg(orders.join("order_lines.csv"));
    }
    line_of(&mut command)
}

/// Runs a program and reads the one line that it prints.
fn line_of(command: &mut Command) -> Result<Line, Failure> {
    let shown = shown(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| Failure::Start { command: shown.clone(), source })?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        // A program says last why it ended, except where it says in the end how it is used.
        let said = said.lines().find(|line| line.starts_with("error:")).or_else(|| said.lines().last());
        let said = said.unwrap_or("nothing").to_owned();
        return Err(Failure::Ended { command: shown, status: output.status, said });
    }
    read_line(&text).ok_or_else(|| Failure::Output { command: shown, line: text.trim().to_owned() })
}

fn read_line(text: &str) -> Option<Line> {
    match serde_json::from_str(text.trim()) {
        Ok(Value::Object(line)) => Some(line),
        _ => None,
    }
}

/// The program's name and what it was asked for, without where.
fn shown(command: &Command) -> String {
    let name =
        Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let asked = command.get_args().map(OsStr::to_string_lossy).filter(|argument| !argument.contains('/'));
    std::iter::once(name.into()).chain(asked).collect::<Vec<_>>().join(" ")
}

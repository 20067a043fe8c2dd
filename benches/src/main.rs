//! The figures of the journal, as shares of what the disk can do and beside another broker: one table.

mod arguments;
mod directory;
mod failure;
#[path = "../peers/limits/mod.rs"]
mod limits;
mod measure;
mod rounds;
mod rows;
mod sides;
mod statistics;
mod table;

use std::fs::{File, OpenOptions};
use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Task};
use crate::failure::Failure;
use crate::rounds::Outcome;
use crate::rows::{ROWS, WIRE_ROWS};
use crate::sides::Context;

/// What a program does that wants the broker's speed: one thread frees what another has made, which costs glibc's own
/// allocator a lock.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.task {
        Some(Task::Measure(asked)) => measure::run(asked),
        None => figures(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("figures: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn figures(arguments: &Arguments) -> Result<(), Failure> {
    let rows: Vec<_> = match arguments.only.as_slice() {
        [] if arguments.wire => WIRE_ROWS.iter().collect(),
        [] => ROWS.iter().collect(),
        only => ROWS.iter().chain(WIRE_ROWS).filter(|row| only.iter().any(|name| name == row.name)).collect(),
    };
    let context = Context::new(arguments)?;
    let mut json = arguments.json.as_deref().map(open).transpose()?;
    let mut outcomes: Vec<Outcome> = Vec::new();
    for row in rows {
        eprintln!("{}: {}", row.name, row.what);
        outcomes.push(rounds::run(row, &context, arguments.rounds, json.as_mut())?);
    }
    print!("{}", table::render(&outcomes));
    Ok(())
}

fn open(path: &std::path::Path) -> Result<File, Failure> {
    OpenOptions::new().create(true).append(true).open(path).map_err(|source| Failure::file(path, source))
}

//! The project's own tools: `cargo xtask test` checks everything, `cargo xtask soak` runs the random tests for long,
//! `cargo xtask bench` measures.

mod areas;
mod arguments;
mod bench;
mod examples;
mod failure;
mod floors;
mod java;
mod mail_server;
mod process;
mod project;
mod readme;
mod report;
mod safety;
mod soak;
mod source;
mod system;
mod tree;

use std::process::ExitCode;

use arguments::{Task, UsageError};
use failure::Failure;
use project::Project;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments::parse(&arguments) {
        Ok(Task::Help) => {
            print!("{}", arguments::help());
            ExitCode::SUCCESS
        }
        Ok(task) => match perform(&task) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("\nxtask: {failure}");
                ExitCode::FAILURE
            }
        },
        Err(error) => refuse(&error),
    }
}

fn perform(task: &Task) -> Result<(), Failure> {
    let project = Project::locate()?;
    match task {
        Task::Help => Ok(()),
        Task::Test { areas, pace } => report::run(&project, areas, *pace),
        Task::Soak(plan) => soak::run(&project, plan),
        Task::Bench(arguments) => bench::run(&project, arguments),
    }
}

fn refuse(error: &UsageError) -> ExitCode {
    eprintln!("xtask: {error}");
    eprintln!("Run `cargo xtask` for help.");
    ExitCode::from(2)
}

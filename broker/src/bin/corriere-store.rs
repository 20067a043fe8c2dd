//! `corriere-store`: looks at the directory in which a broker keeps its messages, and saves what can be saved.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use corriere_broker::files::{Disk, FileSystem};
use corriere_broker::journal::inspect::{self, InspectError};

const USAGE: &str = "\
usage: corriere-store COMMAND DIR

  verify DIR        reads every batch, every record and every live message
  dump DIR          writes the live messages as JSON, one a line
  explain DIR       writes of each segment why it is kept
  repair DIR INTO   brings what can be read into the new directory INTO

DIR is the directory of a broker: <data_directory>/<broker name>. Nothing in it is changed, and no broker may have it
open. The exit code is 0 when all is well, 1 when something is damaged or lost, and 2 when it could not be looked at.
";

/// What was asked for.
enum Command {
    Verify(PathBuf),
    Dump(PathBuf),
    Explain(PathBuf),
    Repair(PathBuf, PathBuf),
    Help,
}

fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(1).map(PathBuf::from).collect::<Vec<_>>();
    let command = match parse(&arguments) {
        Ok(command) => command,
        Err(wrong) => {
            eprintln!("corriere-store: {wrong}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let files: Arc<dyn FileSystem> = Arc::new(Disk);
    let mut out = BufWriter::new(io::stdout().lock());
    let done = run(&command, &files, &mut out).and_then(|is_well| {
        out.flush().map_err(InspectError::Output)?;
        Ok(is_well)
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("corriere-store: {error}");
            ExitCode::from(2)
        }
    }
}

fn parse(arguments: &[PathBuf]) -> Result<Command, String> {
    let Some((command, rest)) = arguments.split_first() else {
        return Err("a command is missing".to_owned());
    };
    let command = command.to_string_lossy();
    match (&*command, rest) {
        ("help" | "--help" | "-h", _) => Ok(Command::Help),
        ("verify", [directory]) => Ok(Command::Verify(directory.clone())),
        ("dump", [directory]) => Ok(Command::Dump(directory.clone())),
        ("explain", [directory]) => Ok(Command::Explain(directory.clone())),
        ("repair", [directory, into]) => Ok(Command::Repair(directory.clone(), into.clone())),
        ("repair", _) => Err("`repair` takes two directories: the one to read and a new one".to_owned()),
        ("verify" | "dump" | "explain", _) => Err(format!("`{command}` takes one directory")),
        _ => {
            let known = ["verify", "dump", "explain", "repair", "help"];
            let nearest = known.into_iter().min_by_key(|known| strsim::damerau_levenshtein(known, &command));
            let near = nearest.filter(|known| strsim::damerau_levenshtein(known, &command) <= 3);
            let hint = near.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
            Err(format!("there is no command `{command}`{hint}"))
        }
    }
}

/// Whether all is well.
fn run(command: &Command, files: &Arc<dyn FileSystem>, out: &mut dyn Write) -> Result<bool, InspectError> {
    match command {
        Command::Verify(directory) => {
            let verified = inspect::verify(files, directory)?;
            lines(out, "damaged", &verified.findings)?;
            lines(out, "torn", &verified.torn)?;
            let (segments, records, messages) = (verified.segments, verified.records, verified.messages);
            let found = match verified.findings.len() {
                0 => "all is well".to_owned(),
                count => format!("{count} found"),
            };
            line(
                out,
                format_args!("{segments} segments, {records} records, {messages} live messages: {found}"),
            )?;
            Ok(verified.findings.is_empty())
        }
        Command::Dump(directory) => {
            let dumped = inspect::dump(files, directory, out)?;
            if dumped.unreadable > 0 {
                eprintln!(
                    "corriere-store: {} of {} messages could not be read",
                    dumped.unreadable, dumped.messages
                );
            }
            Ok(dumped.unreadable == 0)
        }
        Command::Explain(directory) => inspect::explain(files, directory, out).map(|()| true),
        Command::Repair(directory, into) => {
            let repaired = inspect::repair(files, directory, into)?;
            lines(out, "lost", &repaired.lost)?;
            lines(out, "note", &repaired.notes)?;
            line(out, format_args!("{} live messages are in {}", repaired.messages, into.display()))?;
            Ok(repaired.lost.is_empty())
        }
        Command::Help => {
            line(out, USAGE.trim_end())?;
            Ok(true)
        }
    }
}

fn lines<T: Display>(
    out: &mut dyn Write,
    kind: &str,
    findings: impl IntoIterator<Item = T>,
) -> Result<(), InspectError> {
    findings.into_iter().try_for_each(|finding| line(out, format_args!("{kind}: {finding}")))
}

fn line(out: &mut dyn Write, text: impl Display) -> Result<(), InspectError> {
    writeln!(out, "{text}").map_err(InspectError::Output)
}

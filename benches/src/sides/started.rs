//! A program that is at work while something else is measured.

use std::io::{self, BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::{Line, read_line, shown};
use crate::failure::Failure;

/// A program at work. It is killed with its handle, so that none is left when a measurement fails.
pub(super) struct Started {
    child: Child,
    output: BufReader<ChildStdout>,
    shown: String,
}

impl Started {
    /// Starts it.
    pub(super) fn new(command: &mut Command) -> Result<Self, Failure> {
        let shown = shown(command);
        let failure = |source| Failure::Start { command: shown.clone(), source };
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failure)?;
        let output = child.stdout.take().map(BufReader::new);
        let output = output.ok_or_else(|| failure(io::ErrorKind::BrokenPipe.into()))?;
        Ok(Self { child, output, shown })
    }

    /// The next line that it prints.
    pub(super) fn line(&mut self) -> Result<Line, Failure> {
        let mut text = String::new();
        self.output.read_line(&mut text)?;
        read_line(&text)
            .ok_or_else(|| Failure::Output { command: self.shown.clone(), line: text.trim().to_owned() })
    }

    /// Kills it at once, whatever it does (SIGKILL).
    pub(super) fn kill(&mut self) -> Result<(), Failure> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It has ended already, or this failed and cannot be helped.
        let _ = self.kill();
    }
}

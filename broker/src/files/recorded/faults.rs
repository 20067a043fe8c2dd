//! What goes wrong on recorded files, and when.

use std::collections::VecDeque;
use std::io;

use super::seeded::Seeded;

/// Lines of the log that are kept, the latest ones.
const LOGGED: usize = 400;

/// A kind of operation that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Writing bytes.
    Write,
    /// Syncing a file.
    SyncData,
    /// Setting a file's length.
    SetLen,
    /// Opening a file that is not there yet.
    Create,
    /// Giving a file another name.
    Rename,
    /// Removing a file.
    Remove,
    /// Syncing a directory.
    SyncDirectory,
    /// Reading bytes.
    Read,
}

/// An error of the operating system to come. A write that it hits is half written.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// What fails.
    pub operation: Operation,
    /// The how manieth of them from now on, counted from 1.
    pub nth: u64,
    /// How.
    pub error: io::ErrorKind,
    /// Whether all that follow fail, too.
    pub lasting: bool,
}

/// What operations were done, and which are to fail.
#[derive(Debug, Default)]
pub(super) struct Faults {
    operations: u64,
    crash: Option<(u64, u64)>,
    gone: bool,
    faults: Vec<Fault>,
    log: VecDeque<String>,
}

/// Why an operation is not done.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The process has ended before.
    Gone,
    /// It ends in the middle of this operation.
    Crash(Seeded),
    /// The operating system says so.
    Fault(io::ErrorKind),
}

impl Faults {
    pub(super) fn operations(&self) -> u64 {
        self.operations
    }

    pub(super) fn log(&self) -> Vec<String> {
        self.log.iter().cloned().collect()
    }

    pub(super) fn crash_at(&mut self, operation: u64, seed: u64) {
        self.crash = Some((operation, seed));
    }

    pub(super) fn add(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    pub(super) fn end_process(&mut self) {
        self.gone = true;
    }

    /// Whether the process is there, for what is neither counted nor made to fail.
    pub(super) fn alive(&self) -> Result<(), Refusal> {
        if self.gone { Err(Refusal::Gone) } else { Ok(()) }
    }

    /// Counts and logs an operation, and says whether it is done.
    pub(super) fn admit(
        &mut self,
        operation: Operation,
        what: impl FnOnce() -> String,
    ) -> Result<(), Refusal> {
        self.alive()?;
        if operation != Operation::Read {
            self.operations += 1;
        }
        let refusal = self.refusal(operation);
        if operation != Operation::Read || refusal.is_err() {
            if self.log.len() >= LOGGED {
                self.log.pop_front();
            }
            let outcome = match &refusal {
                Ok(()) => String::new(),
                Err(Refusal::Fault(kind)) => format!(" fails: {kind}"),
                Err(Refusal::Crash(_) | Refusal::Gone) => " ends the process".to_owned(),
            };
            self.log.push_back(format!("{} {}{outcome}", self.operations, what()));
        }
        refusal
    }

    fn refusal(&mut self, operation: Operation) -> Result<(), Refusal> {
        if let Some((_, seed)) = self.crash.filter(|(at, _)| self.operations >= *at) {
            self.gone = true;
            return Err(Refusal::Crash(Seeded::new(seed)));
        }
        let mut error = None;
        for fault in self.faults.iter_mut().filter(|fault| fault.operation == operation) {
            fault.nth = fault.nth.saturating_sub(1);
            if fault.nth == 0 {
                error = error.or(Some(fault.error));
            }
        }
        self.faults.retain(|fault| fault.nth > 0 || fault.lasting);
        error.map_or(Ok(()), |kind| Err(Refusal::Fault(kind)))
    }
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Gone | Refusal::Crash(_) => Self::other("the recorded process has ended"),
            Refusal::Fault(kind) => Self::new(kind, "a fault that was asked for"),
        }
    }
}

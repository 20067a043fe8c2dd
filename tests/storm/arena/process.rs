//! The broker as a process of its own, on a disk. It is killed as the operating system kills; its clients come over `tcp:`.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;

use tempfile::TempDir;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use super::{Ending, check_conserved};
use crate::ledger::Ledger;
use crate::line::Address;
use crate::standing::Standing;

#[derive(Debug)]
pub(crate) struct Process {
    pub(super) address: Address,
    directory: TempDir,
    program: Arc<Mutex<Program>>,
}

#[derive(Debug)]
struct Program {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    log: PathBuf,
}

impl Process {
    pub(crate) async fn start() -> Self {
        let (address, directory) = (Address::default(), tempfile::tempdir().unwrap());
        let program = start(directory.path(), &address).await;
        Self { address, directory, program: Arc::new(Mutex::new(program)) }
    }

    pub(super) async fn standing(&self) -> Vec<Standing> {
        let mut program = Arc::clone(&self.program).lock_owned().await;
        spawn_blocking(move || program.standing()).await.unwrap()
    }

    pub(super) async fn restart(&self, ending: Ending, ledger: &Arc<Ledger>) {
        let mut program = Arc::clone(&self.program).lock_owned().await;
        self.address.set(None);
        let told = Arc::clone(ledger);
        program = spawn_blocking(move || {
            match ending {
                Ending::InOrder => program.end(&told),
                Ending::Kill | Ending::PowerCut { .. } => program.kill(&told),
            }
            program
        })
        .await
        .unwrap();
        *program = start(self.directory.path(), &self.address).await;
        ledger.turn();
    }
}

async fn start(directory: &Path, address: &Address) -> Program {
    let directory = directory.to_owned();
    let (program, url) = spawn_blocking(move || Program::start(&directory)).await.unwrap();
    let listens = url.trim().strip_prefix("tcp://").and_then(|listens| listens.parse().ok());
    address.set(Some(listens.unwrap_or_else(|| panic!("it does not start: {url:?}\n{}", program.log()))));
    program
}

impl Program {
    fn start(directory: &Path) -> (Self, String) {
        let log = directory.join("log");
        let said = File::options().create(true).append(true).open(&log).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_storm_broker"))
            .arg(directory)
            .env("RUST_LOG", "warn")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(said)
            .spawn()
            .unwrap();
        let (questions, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut program = Self { child, questions, answers: BufReader::new(answers), log };
        let url = program.answer();
        (program, url)
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line
    }

    fn standing(&mut self) -> Vec<Standing> {
        writeln!(self.questions, "standing").unwrap();
        let answer = self.answer();
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer:?}\n{}", self.log()))
    }

    fn end(&mut self, ledger: &Ledger) {
        check_conserved(&self.standing(), ledger);
        ledger.turn_in_order();
        writeln!(self.questions, "stop").unwrap();
        let status: ExitStatus = self.child.wait().unwrap();
        assert!(status.success(), "{status}\n{}", self.log());
    }

    fn kill(&mut self, ledger: &Ledger) {
        ledger.turn();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The end of what it has said on standard error.
    fn log(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Fails when it has ended.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

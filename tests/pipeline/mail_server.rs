//! A real mail server, `mail_server.py` beside this file.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;
use tempfile::TempDir;

use crate::program::workspace;

/// A server on a free port of this machine. Dropping it ends it.
pub(crate) struct MailServer {
    child: Child,
    modes: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    port: u16,
    directory: TempDir,
}

/// A mail that it took.
#[derive(Debug, Deserialize)]
pub(crate) struct Taken {
    pub id: String,
    pub to: Vec<String>,
    /// Whether it said so.
    pub answered: bool,
}

impl MailServer {
    /// Starts a server that takes every mail.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server that takes every mail of this user, who has to log in with this password.
    pub(crate) fn start_for(user: &str, password: &str) -> Self {
        Self::start_with(&[user, password])
    }

    fn start_with(login: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut child = Command::new(python())
            .arg(workspace().join("tests/pipeline/mail_server.py"))
            .arg(taken_in(directory.path()))
            .args(login)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let modes = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self { child, modes, answers, port: 0, directory };
        server.port = server.answer().parse().unwrap();
        server
    }

    /// Its URL, for `--smtp`.
    pub(crate) fn url(&self) -> String {
        format!("smtp://{}", self.address())
    }

    /// Host and port.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// From now on it behaves like this; `mail_server.py` lists the modes.
    pub(crate) fn set(&mut self, mode: &str) {
        writeln!(self.modes.as_mut().unwrap(), "{mode}").unwrap();
        assert_eq!(self.answer(), "ok");
    }

    /// What it has taken so far.
    pub(crate) fn taken(&self) -> Vec<Taken> {
        let lines = fs::read_to_string(taken_in(self.directory.path())).unwrap();
        // The last line may be half written yet.
        let lines = lines.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        // The end of its input ends it, whatever it is at.
        drop(self.modes.take());
        let _ = self.child.wait();
    }
}

fn taken_in(directory: &Path) -> PathBuf {
    directory.join("taken.jsonl")
}

/// A Python that has the server. Debian installs it for its own, which need not be the first in the path.
fn python() -> &'static str {
    let has_server = |python: &&str| {
        let mut command = Command::new(python);
        command.args(["-c", "import aiosmtpd.smtp"]).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    ["/usr/bin/python3", "python3"].into_iter().find(has_server).unwrap_or_else(|| {
        panic!(
            "these tests need Python's aiosmtpd; as root `cargo xtask test` installs it, otherwise: apt-get install \
             python3-aiosmtpd"
        )
    })
}

//! Runs a Java program to its end.

use std::process::{ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use corriere_tests::java::{command, start, wait};

/// How long a program may run before it is said to hang.
const PATIENCE: Duration = Duration::from_secs(480);

/// What a program printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Ended {
    /// What it printed, if it ended well.
    pub(crate) fn well(self) -> String {
        assert!(self.status.success(), "it ended with {}:\n{}{}", self.status, self.output, self.errors);
        self.output
    }
}

/// Runs a program to its end, without blocking the broker that it talks to.
pub(crate) async fn run(class: &'static str, arguments: &[&str]) -> Ended {
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    tokio::task::spawn_blocking(move || {
        let mut command = command(class, &arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = start(&mut command);
        let (output, errors) = (reader(child.stdout.take()), reader(child.stderr.take()));
        let status = wait(&mut child, PATIENCE);
        let (output, errors) = (output.join().unwrap(), errors.join().unwrap());
        let status = status.unwrap_or_else(|| panic!("{class} did not end:\n{output}{errors}"));
        Ended { status, output, errors }
    })
    .await
    .unwrap()
}

fn reader(pipe: Option<impl std::io::Read + Send + 'static>) -> thread::JoinHandle<String> {
    let mut pipe = pipe.unwrap();
    thread::spawn(move || {
        let mut text = Vec::new();
        pipe.read_to_end(&mut text).unwrap();
        String::from_utf8_lossy(&text).into_owned()
    })
}

//! A real ActiveMQ, for what has to be shown on it first.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::java;

/// A broker of ActiveMQ's in a process of its own; dropping it ends it.
#[derive(Debug)]
pub(crate) struct ActiveMq {
    process: Child,
    url: String,
}

impl ActiveMq {
    pub(crate) fn start() -> Self {
        let mut command = java::command("Broker", &[""; 0]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process =
            command.spawn().unwrap_or_else(|error| panic!("java could not be started: {error}"));
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("url ").map(str::to_owned);
        let Some(url) = url else {
            java::wait(&mut process, Duration::ZERO);
            panic!("ActiveMQ did not start; it said {line:?}");
        };
        Self { process, url }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for ActiveMq {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        java::wait(&mut self.process, Duration::from_secs(30));
    }
}

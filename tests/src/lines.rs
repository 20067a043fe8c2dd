//! What is logged.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};

use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;

/// The lines that are logged in this process.
#[derive(Clone, Debug, Default)]
pub struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// Those of this level and of worse ones, and the ends of spans; what the first call says counts. A subscriber for one thread would
    /// not do: a place in the code that another thread came by first, without a subscriber, would stay mute.
    pub fn of_the_process(level: Level) -> Self {
        static LINES: OnceLock<Lines> = OnceLock::new();
        let lines = LINES.get_or_init(|| {
            let lines = Self::default();
            let subscriber = tracing_subscriber::fmt()
                .with_writer(lines.clone())
                .with_ansi(false)
                .with_max_level(level)
                .with_span_events(FmtSpan::CLOSE)
                .finish();
            tracing::subscriber::set_global_default(subscriber).unwrap();
            lines
        });
        lines.clone()
    }

    /// Those that have all of these parts.
    #[must_use]
    pub fn with(&self, parts: &[&str]) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned();
        let found = text.lines().filter(|line| parts.iter().all(|part| line.contains(part)));
        found.map(str::to_owned).collect()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

//! The signals that end a program.

use std::time::Duration;

use tokio::time::Instant;

use super::Error;

/// A second signal of the same kind within this time is still the first request: `timeout` of the coreutils and some
/// supervisors send a signal to a process and then to its group. Nobody who has waited in vain sends a second one so soon.
const SAME_REQUEST: Duration = Duration::from_millis(500);

/// Tells requests to stop from signals that only repeat one.
#[derive(Debug, Default)]
struct Requests {
    last: Option<(&'static str, Instant)>,
}

impl Requests {
    /// Whether a signal that comes now is a request of its own.
    fn is_new(&mut self, signal: &'static str, now: Instant) -> bool {
        let repeats =
            |(last, at): (&str, Instant)| last == signal && now.saturating_duration_since(at) < SAME_REQUEST;
        if self.last.is_some_and(repeats) {
            return false;
        }
        self.last = Some((signal, now));
        true
    }
}

/// Ctrl-C and SIGTERM.
#[cfg(unix)]
#[derive(Debug)]
pub(super) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    requests: Requests,
}

#[cfg(unix)]
impl Signals {
    /// From now on the signals no longer end the process by themselves.
    pub(super) fn listen() -> Result<Self, Error> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(Error::Signals)?,
            terminate: signal(SignalKind::terminate()).map_err(Error::Signals)?,
            requests: Requests::default(),
        })
    }

    /// The name of the next signal that is a request of its own. Dropping the future loses none.
    pub(super) async fn next(&mut self) -> Result<&'static str, Error> {
        loop {
            let signal = tokio::select! {
                _ = self.interrupt.recv() => "SIGINT",
                _ = self.terminate.recv() => "SIGTERM",
            };
            if self.requests.is_new(signal, Instant::now()) {
                return Ok(signal);
            }
        }
    }
}

/// Ctrl-C.
#[cfg(not(unix))]
#[derive(Debug, Default)]
pub(super) struct Signals {
    requests: Requests,
}

#[cfg(not(unix))]
impl Signals {
    pub(super) fn listen() -> Result<Self, Error> {
        Ok(Self::default())
    }

    /// The name of the next signal.
    pub(super) async fn next(&mut self) -> Result<&'static str, Error> {
        loop {
            tokio::signal::ctrl_c().await.map_err(Error::Signals)?;
            if self.requests.is_new("Ctrl-C", Instant::now()) {
                return Ok("Ctrl-C");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_millis(1);

    #[test]
    fn a_signal_that_is_sent_to_the_process_and_to_its_group_is_one_request() {
        let (mut requests, start) = (Requests::default(), Instant::now());
        assert!(requests.is_new("SIGTERM", start));
        assert!(!requests.is_new("SIGTERM", start));
        assert!(!requests.is_new("SIGTERM", start + SAME_REQUEST - MOMENT));
        // What was left out does not make the time any longer.
        assert!(requests.is_new("SIGTERM", start + SAME_REQUEST));
    }

    #[test]
    fn a_signal_of_another_kind_is_a_request_of_its_own() {
        let (mut requests, start) = (Requests::default(), Instant::now());
        assert!(requests.is_new("SIGTERM", start));
        assert!(requests.is_new("SIGINT", start + MOMENT));
    }
}

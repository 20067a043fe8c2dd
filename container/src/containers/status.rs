//! What a container tells of itself.

use std::fmt;
use std::time::Duration;

use super::EndKind;

/// What a container is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerState {
    /// It receives.
    Running,
    /// It receives nothing until it is resumed.
    Paused,
    /// It receives nothing any more; runs that are under way may still end.
    Stopping,
    /// Nothing is left of it.
    Stopped,
}

/// A container at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerStatus {
    /// What it is doing.
    pub state: ContainerState,
    /// Its workers.
    pub workers: usize,
    /// Those that are running the listener.
    pub busy: usize,
    /// Those that have a consumer at the broker. Messages to a topic are kept for the listener from then on.
    pub subscribed: usize,
    /// Runs that ended well since the start.
    pub handled: u64,
    /// Runs that failed since the start; panics are among them.
    pub failed: u64,
    /// Runs that panicked since the start.
    pub panicked: u64,
    /// Why nothing can be received at the moment.
    pub connection_error: Option<String>,
}

/// How a container's stop went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopReport {
    /// Whether the stop was asked for from inside the container's own listener, so that it takes effect after that run
    /// and this report cannot say how it went.
    pub deferred: bool,
    /// The runs that had not ended when the time was up, and what became of their messages.
    pub abandoned: Vec<Abandoned>,
}

impl StopReport {
    /// Whether every run had ended in time.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.abandoned.is_empty()
    }
}

/// A run that had not ended when its container's time to stop was up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abandoned {
    /// The listener's id.
    pub listener: String,
    /// The message that it was given.
    pub message_id: String,
    /// How long it had been running.
    pub running_for: Duration,
    /// Whether it runs on, which nothing can prevent: it is a blocking function, or an async one that does not yield.
    pub still_running: bool,
    /// What became of its message: given back, unless the listener had settled it before it hung.
    pub end: EndKind,
}

impl fmt::Display for Abandoned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { listener, message_id, running_for, still_running, end } = self;
        write!(f, "listener `{listener}` had been busy with {message_id} for {running_for:.1?}")?;
        f.write_str(if *still_running { " and could not be ended; " } else { " and was ended; " })?;
        f.write_str(match end {
            EndKind::FailedAfterSettling => "it had settled the message itself",
            EndKind::Redelivered => "the message was given back",
            _ => "the broker did not say what became of the message",
        })
    }
}

//! What became of a listener's messages.

use std::fmt;

/// What became of the messages of a listener's destination since the start of the test's application.
#[derive(Clone, Debug)]
pub struct Settled {
    pub(super) listener: &'static str,
    pub(super) acked: u64,
    pub(super) failed: u64,
    pub(super) dead_lettered: u64,
    pub(super) delayed: u64,
    pub(super) failures: Vec<String>,
}

/// A number that a test expects something of.
#[derive(Clone, Copy, Debug)]
#[must_use = "say how many are expected, with `times`"]
pub struct Counted<'a> {
    settled: &'a Settled,
    what: &'static str,
    count: u64,
}

impl Settled {
    /// Runs that ended well and settled their message.
    pub fn acked(&self) -> Counted<'_> {
        self.counted("acknowledged", self.acked)
    }

    /// Runs that failed, those that were repeated among them.
    pub fn failed(&self) -> Counted<'_> {
        self.counted("failed", self.failed)
    }

    /// Messages that went to the dead letters.
    pub fn dead_lettered(&self) -> Counted<'_> {
        self.counted("dead-lettered", self.dead_lettered)
    }

    /// Messages that wait for a delay to be over; see [`RunningTestApp::advance`](super::RunningTestApp::advance).
    pub fn delayed(&self) -> Counted<'_> {
        self.counted("delayed", self.delayed)
    }

    /// The failures as text, in the order in which they happened.
    #[must_use]
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    fn counted(&self, what: &'static str, count: u64) -> Counted<'_> {
        Counted { settled: self, what, count }
    }
}

impl<'a> Counted<'a> {
    /// Makes sure that it is this number.
    ///
    /// # Panics
    /// When it is another, saying what became of all the listener's messages.
    #[track_caller]
    pub fn times(self, expected: u64) -> &'a Settled {
        let Self { settled, what, count } = self;
        assert!(
            count == expected,
            "listener `{}`: {expected} {what} expected, but {settled}",
            settled.listener
        );
        settled
    }

    /// The number.
    #[must_use]
    pub fn count(self) -> u64 {
        self.count
    }
}

impl fmt::Display for Settled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acked, failed, dead_lettered, delayed, .. } = self;
        write!(f, "{acked} acknowledged, {failed} failed, {dead_lettered} dead-lettered, {delayed} delayed")?;
        for failure in &self.failures {
            write!(f, "\n  failure: {failure}")?;
        }
        Ok(())
    }
}

//! Points in time, and the clock that everything in Corriere reads.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

/// Milliseconds since 1970-01-01T00:00:00Z, as in `JMSTimestamp` and `JMSExpiration`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// This moment plus `duration`, at the far end of time instead of past it.
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }

    /// How long after `earlier` this moment is; zero when it is not after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// What tells the time to a broker, a client and a container.
///
/// [`Clock::system`] is the machine's; [`Clock::manual`] moves only when [`Clock::advance`] is called, which lets a
/// test pass hours of redelivery delay at once without touching tokio's own clock. Clones share the clock.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Manual(Arc<Manual>),
}

#[derive(Debug)]
struct Manual {
    now: Mutex<Timestamp>,
    changes: watch::Sender<Timestamp>,
}

impl Manual {
    fn now(&self) -> MutexGuard<'_, Timestamp> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that stands at `start` until it is advanced.
    #[must_use]
    pub fn manual(start: Timestamp) -> Self {
        Self(Source::Manual(Arc::new(Manual { now: Mutex::new(start), changes: watch::Sender::new(start) })))
    }

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => {
                let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Timestamp(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
            }
            Source::Manual(manual) => *manual.now(),
        }
    }

    /// Moves a manual clock forward and wakes who sleeps on it.
    ///
    /// # Panics
    /// On the system clock, which nobody can move: a test that calls this on it is wrong.
    pub fn advance(&self, by: Duration) {
        let Source::Manual(manual) = &self.0 else {
            panic!("only a manual clock can be advanced; this is the system clock");
        };
        let now = {
            let mut now = manual.now();
            *now = now.saturating_add(by);
            *now
        };
        manual.changes.send_replace(now);
    }

    /// Completes when this clock has reached `until`. Dropping it has no effect.
    pub async fn sleep_until(&self, until: Timestamp) {
        match &self.0 {
            Source::System => loop {
                let now = self.now();
                if now >= until {
                    return;
                }
                // A day at a time: the timer has its own upper bound, and the wall clock may be set meanwhile.
                tokio::time::sleep(until.since(now).min(Duration::from_hours(24))).await;
            },
            Source::Manual(manual) => {
                let mut changes = manual.changes.subscribe();
                // The sender lives in the clock that `self` keeps, so this cannot fail.
                let _ = changes.wait_for(|now| *now >= until).await;
            }
        }
    }

    /// Completes when `duration` has passed on this clock. Dropping it has no effect.
    pub async fn sleep(&self, duration: Duration) {
        self.sleep_until(self.now().saturating_add(duration)).await;
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_manual_clock_wakes_its_sleepers_only_when_it_is_advanced() {
        let clock = Clock::manual(Timestamp(1_000));
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep(Duration::from_secs(5)).await }
        });
        clock.advance(Duration::from_secs(4));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_secs(3_600));
        sleeper.await.unwrap();
    }

    #[test]
    fn adding_to_a_moment_never_wraps() {
        assert_eq!(Timestamp(u64::MAX - 1).saturating_add(Duration::MAX), Timestamp(u64::MAX));
    }
}

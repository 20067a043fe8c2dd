//! Points in time, and the clock that everything in Corriere reads.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

/// Milliseconds since 1970-01-01T00:00:00Z, as in `JMSTimestamp` and `JMSExpiration`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// This moment plus `duration`, at the far end of time instead of past it.
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(milliseconds(duration)))
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
/// [`Clock::system`] is the machine's, except that it never goes back; [`Clock::manual`] moves only when [`Clock::advance`] is called, which lets a
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
    /// The machine's clock. When that is set back this one goes on from where it was, at the same pace, so that nothing
    /// expires early and no delay stands still; when it is set forward, or has slept, this one follows.
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
            Source::System => system_now(),
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

fn system_now() -> Timestamp {
    static START: OnceLock<Instant> = OnceLock::new();
    static CLOCK: SteadyWallClock = SteadyWallClock { ahead: AtomicU64::new(0) };
    let running = milliseconds(START.get_or_init(Instant::now).elapsed());
    let wall = milliseconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    CLOCK.read(running, wall)
}

/// The wall clock without its steps back, by the clock of the processor, which only runs.
struct SteadyWallClock {
    /// How far the wall clock has been ahead of the running one at most, in milliseconds.
    ahead: AtomicU64,
}

impl SteadyWallClock {
    fn read(&self, running: u64, wall: u64) -> Timestamp {
        let ahead = wall.saturating_sub(running);
        Timestamp(running.saturating_add(self.ahead.fetch_max(ahead, Ordering::Relaxed).max(ahead)))
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
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
    fn a_clock_that_is_set_back_goes_on_and_one_that_is_set_forward_is_followed() {
        let clock = SteadyWallClock { ahead: AtomicU64::new(0) };
        assert_eq!(clock.read(0, 7_200_000), Timestamp(7_200_000));
        assert_eq!(clock.read(10, 3_600_010), Timestamp(7_200_010), "an hour back");
        assert_eq!(clock.read(20, 3_600_020), Timestamp(7_200_020), "at the same pace");
        assert_eq!(clock.read(30, 9_000_030), Timestamp(9_000_030), "forward");
    }

    #[test]
    fn adding_to_a_moment_never_wraps() {
        assert_eq!(Timestamp(u64::MAX - 1).saturating_add(Duration::MAX), Timestamp(u64::MAX));
    }
}

//! The container's connection, made again when it is lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use corriere_core::SlowConsumer;
use corriere_core::{Connection, ConnectionFactory, Error};
use tokio::sync::{Mutex as AsyncMutex, watch};

use super::{DeliveryObserver, SlowListener};

/// Makes the container's connection and makes it again.
///
/// The pauses are measured in real time, also where a test moves the clock: how soon a broker is back has nothing to do
/// with the time of day that messages live in.
#[derive(Debug)]
pub(super) struct Connector {
    listener: &'static str,
    factory: ConnectionFactory,
    observer: Option<Arc<dyn DeliveryObserver>>,
    back_off: BackOff,
    /// Held while one worker connects for all.
    connection: AsyncMutex<Option<Connection>>,
    failure: watch::Sender<Option<String>>,
}

impl Connector {
    pub(super) fn new(
        listener: &'static str,
        factory: ConnectionFactory,
        observer: Option<Arc<dyn DeliveryObserver>>,
        first: Duration,
        maximum: Duration,
    ) -> Self {
        Self {
            listener,
            factory,
            observer,
            back_off: BackOff::new(first, maximum),
            connection: AsyncMutex::new(None),
            failure: watch::Sender::new(None),
        }
    }

    /// The connection, once there is one. Dropping the future leaves the attempt to the next who asks.
    pub(super) async fn connection(&self) -> Connection {
        let mut connection = self.connection.lock().await;
        if let Some(open) = connection.as_ref().filter(|connection| connection.is_open()) {
            return open.clone();
        }
        *connection = None;
        loop {
            self.back_off.over().await;
            let attempt = self.back_off.begin_attempt(Instant::now());
            match self.connect().await {
                Ok(made) => {
                    if attempt > 1 {
                        tracing::info!(listener = self.listener, attempt, "connected again");
                    }
                    return connection.insert(made).clone();
                }
                Err(error) => {
                    self.back_off.restart_pause(Instant::now());
                    self.report(attempt, &error);
                }
            }
        }
    }

    /// A message was received: the next failure is a new one.
    pub(super) fn succeeded(&self) {
        self.back_off.reset();
    }

    /// A consumer is at the broker.
    pub(super) fn subscribed(&self) {
        self.set_failure(None);
    }

    /// Receiving over `connection` has failed. Where the connection is well by itself, this waits before the next attempt;
    /// where it is lost, making a new one has its own pauses.
    pub(super) async fn failed(&self, error: &Error, connection: &Connection) {
        if !connection.is_open() {
            self.set_failure(Some(error.to_string()));
            return;
        }
        if let Some(attempt) = self.back_off.count_failure(Instant::now()) {
            self.report(attempt, error);
        }
        self.back_off.over().await;
    }

    /// Why nothing can be received at the moment.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    /// Completes when nothing can be received, with the reason.
    pub(super) async fn failing(&self) -> String {
        let mut failure = self.failure.subscribe();
        // The sender lives in `self`, so this cannot fail.
        let failure = failure.wait_for(Option::is_some).await.ok().and_then(|failure| failure.clone());
        failure.unwrap_or_default()
    }

    /// The connection, if there is one, for its end. While somebody connects there is none.
    pub(super) fn take(&self) -> Option<Connection> {
        self.connection.try_lock().ok()?.take()
    }

    async fn connect(&self) -> Result<Connection, Error> {
        let connection = self.factory.create_connection().await?;
        if let Some(observer) = self.observer.clone() {
            let listener = self.listener;
            connection.on_slow_consumer(move |slow| {
                let SlowConsumer { destination, unacknowledged, .. } = slow.clone();
                observer.slow(&SlowListener { listener, destination, unacknowledged });
            })?;
        }
        connection.start()?;
        Ok(connection)
    }

    fn set_failure(&self, failure: Option<String>) {
        self.failure.send_replace(failure);
    }

    fn report(&self, attempt: u32, error: &Error) {
        self.set_failure(Some(error.to_string()));
        // The first failure, then ever more rarely: a broker that is away for a night is worth a dozen lines.
        if attempt.is_power_of_two() {
            let pause = self.back_off.pause(attempt);
            tracing::warn!(listener = self.listener, %error, attempt, ?pause, "cannot receive; trying again");
        }
    }
}

/// Pauses that double from one attempt to the next.
#[derive(Debug)]
struct BackOff {
    first: Duration,
    maximum: Duration,
    attempts: Mutex<Attempts>,
}

#[derive(Debug, Default)]
struct Attempts {
    count: u32,
    /// When the next one may begin.
    pause_ends: Option<Instant>,
}

impl BackOff {
    fn new(first: Duration, maximum: Duration) -> Self {
        Self { first, maximum, attempts: Mutex::default() }
    }

    /// Counts an attempt and returns its number, from 1.
    fn begin_attempt(&self, now: Instant) -> u32 {
        let mut attempts = self.attempts();
        attempts.count = attempts.count.saturating_add(1);
        attempts.pause_ends = Some(now + self.pause(attempts.count));
        attempts.count
    }

    /// Counts a failure, unless it falls into the pause after an earlier one: what fails for one worker fails for all of
    /// them, and that is one attempt, however many they are.
    fn count_failure(&self, now: Instant) -> Option<u32> {
        let is_pausing = self.attempts().pause_ends.is_some_and(|end| now < end);
        (!is_pausing).then(|| self.begin_attempt(now))
    }

    /// Has the pause begin anew, as the attempt before it took its time.
    fn restart_pause(&self, now: Instant) {
        let mut attempts = self.attempts();
        attempts.pause_ends = Some(now + self.pause(attempts.count));
    }

    fn reset(&self) {
        *self.attempts() = Attempts::default();
    }

    /// Completes when the next attempt may begin.
    async fn over(&self) {
        let end = self.attempts().pause_ends;
        if let Some(end) = end {
            tokio::time::sleep_until(end.into()).await;
        }
    }

    /// The pause after this many attempts.
    fn pause(&self, attempts: u32) -> Duration {
        self.first.saturating_mul(1 << attempts.saturating_sub(1).min(20)).min(self.maximum)
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(500);

    #[test]
    fn pauses_double_up_to_a_bound_and_start_again_only_after_a_success() {
        let back_off = BackOff::new(FIRST, Duration::from_secs(3));
        assert_eq!(back_off.attempts().pause_ends, None, "none before the first attempt");
        let mut now = Instant::now();
        let mut pauses = Vec::new();
        for attempt in 1..=5 {
            assert_eq!(back_off.begin_attempt(now), attempt);
            let end = back_off.attempts().pause_ends.unwrap();
            pauses.push((end - now).as_millis());
            now = end;
        }
        assert_eq!(pauses, [500, 1_000, 2_000, 3_000, 3_000]);
        back_off.reset();
        assert_eq!(back_off.attempts().pause_ends, None);
    }

    #[test]
    fn what_fails_for_many_workers_is_one_attempt() {
        let back_off = BackOff::new(FIRST, Duration::from_secs(60));
        let start = Instant::now();
        let failures: Vec<_> = (0..16).map(|_| back_off.count_failure(start)).collect();
        assert_eq!(failures.iter().flatten().collect::<Vec<_>>(), [&1]);
        assert_eq!(back_off.count_failure(start + FIRST), Some(2));
        assert_eq!(back_off.attempts().pause_ends, Some(start + FIRST + 2 * FIRST));
    }
}

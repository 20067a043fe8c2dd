//! The container's connection, made again when it is lost.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use corriere_core::{Connection, ConnectionFactory, Error};
use tokio::sync::Mutex as AsyncMutex;

/// Makes the container's connection and makes it again.
///
/// The pauses are measured in real time, also where a test moves the clock: how soon a broker is back has nothing to do
/// with the time of day that messages live in.
#[derive(Debug)]
pub(super) struct Connector {
    listener: &'static str,
    factory: ConnectionFactory,
    back_off: BackOff,
    /// Held while one worker connects for all.
    connection: AsyncMutex<Option<Connection>>,
    failure: Mutex<Option<String>>,
}

impl Connector {
    pub(super) fn new(
        listener: &'static str,
        factory: ConnectionFactory,
        first: Duration,
        maximum: Duration,
    ) -> Self {
        Self {
            listener,
            factory,
            back_off: BackOff::new(first, maximum),
            connection: AsyncMutex::new(None),
            failure: Mutex::new(None),
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
            tokio::time::sleep(self.back_off.pause()).await;
            let attempt = self.back_off.count_attempt();
            match self.connect().await {
                Ok(made) => {
                    if attempt > 1 {
                        tracing::info!(listener = self.listener, attempt, "connected again");
                    }
                    return connection.insert(made).clone();
                }
                Err(error) => self.report(attempt, &error),
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
        let attempt = self.back_off.count_attempt();
        self.report(attempt, error);
        tokio::time::sleep(self.back_off.pause()).await;
    }

    /// Why nothing can be received at the moment.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The connection, if there is one, for its end. While somebody connects there is none.
    pub(super) fn take(&self) -> Option<Connection> {
        self.connection.try_lock().ok()?.take()
    }

    async fn connect(&self) -> Result<Connection, Error> {
        let connection = self.factory.create_connection().await?;
        connection.start()?;
        Ok(connection)
    }

    fn set_failure(&self, failure: Option<String>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    fn report(&self, attempt: u32, error: &Error) {
        self.set_failure(Some(error.to_string()));
        // The first failure, then ever more rarely: a broker that is away for a night is worth a dozen lines.
        if attempt.is_power_of_two() {
            let pause = self.back_off.pause();
            tracing::warn!(listener = self.listener, %error, attempt, ?pause, "cannot receive; trying again");
        }
    }
}

/// Pauses that double from one attempt to the next.
#[derive(Debug)]
struct BackOff {
    first: Duration,
    maximum: Duration,
    attempts: AtomicU32,
}

impl BackOff {
    fn new(first: Duration, maximum: Duration) -> Self {
        Self { first, maximum, attempts: AtomicU32::new(0) }
    }

    /// Counts an attempt and returns its number, from 1.
    fn count_attempt(&self) -> u32 {
        self.attempts.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    fn reset(&self) {
        self.attempts.store(0, Ordering::Relaxed);
    }

    /// The pause before the next attempt; none before the first.
    fn pause(&self) -> Duration {
        match self.attempts.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            attempts => self.first.saturating_mul(1 << (attempts - 1).min(20)).min(self.maximum),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_start_again_only_after_a_success() {
        let back_off = BackOff::new(Duration::from_millis(500), Duration::from_secs(3));
        let pauses: Vec<_> = (0..6)
            .map(|_| {
                let pause = back_off.pause().as_millis();
                back_off.count_attempt();
                pause
            })
            .collect();
        assert_eq!(pauses, [0, 500, 1_000, 2_000, 3_000, 3_000]);
        back_off.reset();
        assert_eq!(back_off.pause(), Duration::ZERO);
    }
}

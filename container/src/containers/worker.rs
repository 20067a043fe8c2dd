//! One worker: a session and a consumer that feed the listener.

use std::sync::Arc;
use std::time::{Duration, Instant};

use corriere_core::{AcknowledgeMode, Consumer, ConsumerOptions, Delivery, Error, Session};

use super::ContainerState;
use super::run::{self, SessionAfter};
use super::shared::Shared;

/// For how long messages must have waited behind those that a worker works on before another worker is called. Not at
/// once: most backlogs are gone sooner than another worker could begin.
const LASTING_BACKLOG: Duration = Duration::from_millis(50);

/// Receives and runs the listener until the container stops or the worker retires.
pub(super) async fn work(shared: Arc<Shared>, number: u64) {
    let worker = Worker { shared, number };
    loop {
        tokio::select! {
            biased;
            () = worker.shared.ending() => return,
            session = worker.session() => match worker.serve(session).await {
                Next::NewSession => {}
                Next::End => return,
            },
        }
    }
}

struct Worker {
    shared: Arc<Shared>,
    number: u64,
}

enum Next {
    NewSession,
    End,
}

/// What a worker that waits for a message has come to.
enum Waited {
    Message(Box<Delivery>),
    /// State or bounds of the container have changed.
    Changed,
    Idle,
    Failed(Error),
    /// The listener, or somebody it gave the session to, has closed session or consumer.
    Closed,
}

impl Worker {
    /// A session, however long it takes.
    async fn session(&self) -> Session {
        let mode = self.shared.settings.acknowledge.session_mode();
        loop {
            let connection = self.shared.connector.connection().await;
            match connection.create_session(mode).await {
                Ok(session) => return session,
                Err(error) => self.shared.connector.failed(&error, &connection).await,
            }
        }
    }

    /// Receives with this session as long as it is good.
    async fn serve(&self, session: Session) -> Next {
        let mut consumer: Option<Subscribed> = None;
        let mut backlog = Backlog::default();
        let mut state = self.shared.state.subscribe();
        loop {
            if self.shared.change(|pool| pool.retire_surplus(self.number)) {
                return Next::End;
            }
            let now = *state.borrow_and_update();
            match now {
                ContainerState::Running => {}
                ContainerState::Paused => {
                    // On a queue others may have what is in the buffer; a topic's subscription has to stay.
                    if !self.shared.settings.destination.is_topic() {
                        consumer = None;
                    }
                    // What is settled and was put off is not left untold for as long as the pause takes.
                    let puts_off = matches!(session.mode(), AcknowledgeMode::Auto | AcknowledgeMode::DupsOk);
                    if let Some(open) = consumer.as_ref().filter(|_| puts_off)
                        && let Err(error) = open.consumer.acknowledge().await
                    {
                        return self.give_up(&session, &error).await;
                    }
                    // The sender lives in `shared`, so this cannot fail.
                    let _ = state.changed().await;
                    continue;
                }
                ContainerState::Stopping | ContainerState::Stopped => return Next::End,
            }
            let open = match &consumer {
                Some(open) => open,
                None => match self.open_consumer(&session).await {
                    Ok(opened) => consumer.insert(opened),
                    Err(error) => return self.give_up(&session, &error).await,
                },
            };
            let waited = tokio::select! {
                biased;
                _ = state.changed() => Waited::Changed,
                taken = open.consumer.take() => match taken {
                    Ok(Some(delivery)) => Waited::Message(Box::new(delivery.into_single())),
                    Ok(None) | Err(Error::IllegalState { .. }) => Waited::Closed,
                    Err(error) => Waited::Failed(error),
                },
                () = self.idle() => Waited::Idle,
            };
            match waited {
                Waited::Message(delivery) => {
                    self.shared.connector.succeeded();
                    match self.handle(&session, &mut consumer, &mut backlog, *delivery).await {
                        SessionAfter::Usable => {}
                        SessionAfter::Broken => return Next::NewSession,
                    }
                }
                Waited::Idle => {
                    let spare = self.sees_no_backlog();
                    if self.shared.change(|pool| pool.retire_idle(self.number, spare)) {
                        return Next::End;
                    }
                }
                Waited::Changed => {}
                Waited::Closed => return Next::NewSession,
                Waited::Failed(error) => {
                    drop(consumer);
                    return self.give_up(&session, &error).await;
                }
            }
        }
    }

    async fn handle(
        &self,
        session: &Session,
        consumer: &mut Option<Subscribed>,
        backlog: &mut Backlog,
        delivery: Delivery,
    ) -> SessionAfter {
        let run = run::begin(&self.shared, self.number, &delivery);
        let waits = consumer.as_ref().is_some_and(|open| open.consumer.has_backlog());
        if backlog.is_lasting(waits, Instant::now()) || self.sees_no_backlog() {
            self.shared.grow();
        }
        let handled = run::handle(&self.shared, session, delivery, run);
        tokio::pin!(handled);
        // What waits in this worker's buffer waits for this worker. Without its consumer it goes to others, and the message
        // at hand stays the session's to settle.
        if let Some(open) = consumer {
            tokio::select! {
                after = &mut handled => return after,
                () = self.not_needed_here(&open.consumer) => *consumer = None,
            }
        }
        handled.await
    }

    /// Completes when the messages in the buffer of a busy worker are better off elsewhere.
    async fn not_needed_here(&self, consumer: &Consumer) {
        let is_topic = self.shared.settings.destination.is_topic();
        let mut state = self.shared.state.subscribe();
        let leaves = state.wait_for(|state| match state {
            ContainerState::Running => false,
            ContainerState::Paused => !is_topic,
            ContainerState::Stopping | ContainerState::Stopped => true,
        });
        let others = async {
            loop {
                tokio::time::sleep(LASTING_BACKLOG).await;
                if consumer.has_backlog() && self.others_could_work() {
                    return;
                }
            }
        };
        tokio::select! {
            // The sender lives in `shared`, so this cannot fail.
            _ = leaves => {}
            () = others, if self.shared.pool().concurrency().upper() > 1 => {}
        }
    }

    async fn open_consumer(&self, session: &Session) -> Result<Subscribed, Error> {
        let destination = &self.shared.settings.destination;
        let options = ConsumerOptions { prefetch: Some(self.prefetch()), ..ConsumerOptions::default() };
        let consumer = match &self.shared.settings.subscription {
            Some(name) => session.create_durable_consumer_with(destination, name, &options).await?,
            None => session.create_consumer_with(destination, &options).await?,
        };
        self.shared.connector.subscribed();
        self.shared.change(|pool| pool.set_subscribed(self.number, true));
        Ok(Subscribed { consumer, _mark: Mark { shared: Arc::clone(&self.shared), number: self.number } })
    }

    /// After a failure: a new session, after a pause.
    async fn give_up(&self, session: &Session, error: &Error) -> Next {
        let connection = session.connection();
        tokio::select! {
            biased;
            () = self.shared.ending() => Next::End,
            () = self.shared.connector.failed(error, &connection) => Next::NewSession,
        }
    }

    /// Completes when the worker has waited for long enough to retire, if it may.
    async fn idle(&self) {
        let settings = &self.shared.settings;
        let concurrency = self.shared.pool().concurrency();
        if concurrency.lower() == concurrency.upper() {
            return std::future::pending().await;
        }
        settings.clock.sleep(settings.idle_timeout).await;
    }

    fn prefetch(&self) -> u32 {
        self.shared.settings.prefetch
    }

    /// With so little prefetch nothing waits in the buffer of a busy worker. There the sign of work for one more worker
    /// is only that an idle one was given something.
    fn sees_no_backlog(&self) -> bool {
        self.prefetch() <= 1
    }

    /// Whether another worker is idle, or one more could be started, which it then is.
    fn others_could_work(&self) -> bool {
        let summary = self.shared.pool().summary();
        summary.busy < summary.workers || self.shared.grow()
    }
}

/// A consumer at the broker, and the note in the pool that there is one.
struct Subscribed {
    // Dropped in this order: who sees no note finds no consumer.
    consumer: Consumer,
    _mark: Mark,
}

struct Mark {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.shared.change(|pool| pool.set_subscribed(self.number, false));
    }
}

/// Since when messages have been waiting at every hand-over: where all runs are short, no single one shows it.
#[derive(Debug, Default)]
struct Backlog {
    since: Option<Instant>,
}

impl Backlog {
    /// Takes note of a hand-over behind which messages wait or not; whether they have been waiting for long. Then it counts
    /// anew, so that one worker after the other is called.
    fn is_lasting(&mut self, waits: bool, now: Instant) -> bool {
        if !waits {
            self.since = None;
            return false;
        }
        let is_lasting = now.duration_since(*self.since.get_or_insert(now)) >= LASTING_BACKLOG;
        if is_lasting {
            self.since = Some(now);
        }
        is_lasting
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.change(|pool| pool.remove(self.number));
        // Nothing of a listener's gets here. What does, such as a panic in a subscriber to the log, must not leave the
        // container with fewer workers for good.
        if std::thread::panicking() && !self.shared.is_ending() {
            tracing::error!(listener = self.shared.listener.id, "a worker panicked; another takes its place");
            self.shared.fill();
        }
    }
}

#[cfg(test)]
mod tests {
    use corriere_core::panic::caught;
    use corriere_core::{ConnectionFactory, Destination};
    use corriere_templates::JsonConverter;

    use super::*;
    use crate::containers::ContainerSettings;
    use crate::containers::pool::Pool;
    use crate::listener::{ListenerDef, ListenerDestination, Outcome};

    fn shared() -> Arc<Shared> {
        let listener = ListenerDef {
            id: "listener",
            module: "tests",
            location: "tests.rs:1:1",
            destination: ListenerDestination::Queue("q"),
            subscription: None,
            client_id: None,
            acknowledge: None,
            concurrency: None,
            send_to: None,
            container: None,
            beans: &[],
            replies: false,
            blocking: false,
            invoke: |_| Box::pin(async { Outcome::DONE }),
        };
        let factory = ConnectionFactory::from_url("vm://nowhere").unwrap();
        let destination = Destination::queue("q").unwrap();
        let settings = ContainerSettings::new(factory, destination, Arc::new(JsonConverter::new()));
        Arc::new(Shared::new(listener, settings, tokio::runtime::Handle::current()))
    }

    #[test]
    fn a_backlog_lasts_over_many_short_runs_and_ends_where_nothing_waits() {
        let (mut backlog, start) = (Backlog::default(), Instant::now());
        let mut at = |waits, millis| backlog.is_lasting(waits, start + Duration::from_millis(millis));
        assert!(!at(true, 0) && !at(true, 20) && !at(true, 40));
        assert!(at(true, 60), "although no run took 50 ms");
        assert!(!at(true, 80) && !at(true, 100), "the next worker only after as long again");
        assert!(at(true, 120));
        assert!(!at(false, 130));
        assert!(!at(true, 190), "it is another backlog");
    }

    #[tokio::test]
    async fn a_worker_that_panics_is_replaced_unless_the_container_ends() {
        for (state, left) in [(ContainerState::Running, 1), (ContainerState::Stopping, 0)] {
            let shared = shared();
            shared.state.send_replace(state);
            let number = shared.change(Pool::add_missing).unwrap();
            let worker = Worker { shared: Arc::clone(&shared), number };
            caught(move || {
                let _worker = worker;
                panic!("outside of the listener");
            })
            .unwrap_err();
            assert!(!shared.pool().contains(number));
            assert_eq!(shared.pool().summary().workers, left, "{state:?}");
        }
    }
}

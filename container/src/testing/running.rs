//! The application of a test while it runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use corriere_broker::files::RecordedFiles;
use corriere_broker::{Broker, Counts, DeadLetters};
use corriere_core::{Clock, ConnectionFactory, Destination, Message};
use corriere_templates::{JmsTemplate, ReceiveTimeout};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::observer::Ends;
use super::settled::Settled;
use super::setup::Setup;
use crate::application::Application;
use crate::containers::ListenerContainer;
use crate::listener::ListenerDef;

/// How long anything may take before a test is said to hang.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a state is looked at that nobody tells of.
const GLANCE: Duration = Duration::from_millis(2);
/// How many glances in a row must show the same before a queue that is held up by a delay is said to rest.
const STILL: u32 = 10;

/// The running application of a test. Its methods panic where a test would only unwrap.
///
/// Names of destinations are those that the application's code uses.
#[derive(Debug)]
pub struct RunningTestApp {
    pub(super) life: Life,
    pub(super) template: JmsTemplate,
}

/// A test's application from one start to its end.
pub(super) struct Life {
    pub(super) setup: Setup,
    pub(super) files: RecordedFiles,
    pub(super) application: Application,
    pub(super) broker: Broker,
    pub(super) dead_letters: DeadLetters,
    pub(super) ends: Arc<Ends>,
}

impl RunningTestApp {
    pub(super) fn new(life: Life) -> Self {
        let url = format!("vm://{}", life.broker.name());
        let factory = ConnectionFactory::from_url(&url).unwrap_or_else(|error| panic!("{error}"));
        let template = JmsTemplate::builder(factory)
            .destination_resolver(Arc::new(life.application.destinations().clone()))
            .build()
            .unwrap_or_else(|error| panic!("{error}"));
        Self { life, template }
    }

    /// Sends a value, as JSON, and returns when the broker has it.
    ///
    /// # Panics
    /// When it cannot be sent.
    pub async fn send<T: Serialize + Sync + ?Sized>(&self, destination: &str, value: &T) {
        in_time(
            &format!("the send to `{destination}`"),
            self.template.convert_and_send_to(destination, value),
        )
        .await
        .unwrap_or_else(|error| panic!("sending to `{destination}`: {error}"));
    }

    /// Sends a message as it is, and returns when the broker has it.
    ///
    /// # Panics
    /// When it cannot be sent.
    pub async fn send_message(&self, destination: &str, message: &Message) {
        in_time(&format!("the send to `{destination}`"), self.template.send_to(destination, message))
            .await
            .unwrap_or_else(|error| panic!("sending to `{destination}`: {error}"));
    }

    /// Waits until nothing more happens to the messages of a listener without a new message or a later time: each is
    /// settled, or waits for the delay of its redelivery, or stands behind one that does. What has become of them by then
    /// survives a crash.
    ///
    /// # Panics
    /// When the listener was not started, or after half a minute.
    pub async fn settled(&self, listener: ListenerDef) -> Settled {
        let container = self.container(&listener);
        let destination = self.source(container);
        let wait = async {
            let mut still = 0;
            let mut before = (Counts::default(), 0);
            loop {
                let counts = self.life.broker.counts(&destination).unwrap_or_default();
                let delayed = self.life.broker.delayed(&destination);
                // What is counted and not yet written would be undone by a crash.
                let is_kept = self.life.broker.batches_at_store() == 0;
                let rests = counts.in_flight == 0 && container.status().busy == 0 && is_kept;
                if rests && counts.pending == delayed {
                    return (counts, delayed);
                }
                // A message behind a delayed one is ready and yet goes nowhere, which only time can tell from one that is
                // about to go.
                still = if rests && delayed > 0 && before == (counts, delayed) { still + 1 } else { 0 };
                if still == STILL {
                    return (counts, delayed);
                }
                before = (counts, delayed);
                tokio::time::sleep(GLANCE).await;
            }
        };
        let Ok((counts, delayed)) = tokio::time::timeout(PATIENCE, wait).await else {
            panic!(
                "listener `{}` has not come to rest in {PATIENCE:?}: {destination} has {:?}, its container {:?}",
                listener.id,
                self.life.broker.counts(&destination).unwrap_or_default(),
                container.status()
            );
        };
        let tally = self.life.ends.of(listener.id);
        Settled {
            listener: listener.id,
            acked: tally.acked,
            failed: tally.failed,
            dead_lettered: counts.dead_lettered,
            delayed,
            failures: tally.failures,
        }
    }

    /// Takes the next message from a destination and reads it.
    ///
    /// # Panics
    /// When none comes within half a minute, or it cannot be read as a `T`.
    pub async fn take_one<T: DeserializeOwned + Send>(&self, destination: &str) -> T {
        let message = self.take_message(destination).await;
        self.template
            .message_converter()
            .decode(&message)
            .unwrap_or_else(|error| panic!("the message from `{destination}`: {error}"))
    }

    /// Takes the next message from a destination as it is.
    ///
    /// # Panics
    /// When none comes within half a minute.
    pub async fn take_message(&self, destination: &str) -> Message {
        // The template would wait on the test's clock, which stands still.
        let template = self.template.with_receive_timeout(ReceiveTimeout::Indefinite);
        let received =
            in_time(&format!("a message from `{destination}`"), template.receive_from(destination)).await;
        received
            .unwrap_or_else(|error| panic!("receiving from `{destination}`: {error}"))
            .unwrap_or_else(|| panic!("the broker stopped before there was a message from `{destination}`"))
    }

    /// Makes sure that there is no message at a destination, neither waiting nor with a consumer.
    ///
    /// # Panics
    /// When there is one.
    #[track_caller]
    pub fn is_empty(&self, destination: &str) -> &Self {
        let pending = self.life.broker.counts(&self.resolve(destination)).unwrap_or_default().pending;
        assert!(pending == 0, "`{destination}` should be empty, but holds {pending} messages");
        self
    }

    /// Takes all dead letters of a destination, in their order.
    ///
    /// # Panics
    /// When they cannot be received.
    pub async fn dead_letters(&self, destination: &str) -> Vec<Message> {
        let source = self.resolve(destination);
        let name = match self.life.dead_letters {
            DeadLetters::Shared => "ActiveMQ.DLQ".to_owned(),
            _ if source.is_topic() => format!("DLQ.topic.{}", source.name()),
            _ => format!("DLQ.{}", source.name()),
        };
        let template = self.template.with_receive_timeout(ReceiveTimeout::NoWait);
        let mut letters = Vec::new();
        loop {
            let received = template.receive_from(format!("queue://{name}")).await;
            match received.unwrap_or_else(|error| panic!("receiving from `{name}`: {error}")) {
                Some(letter) => letters.push(letter),
                None => return letters,
            }
        }
    }

    /// Moves the test's clock, which moves in no other way.
    pub fn advance(&self, by: Duration) {
        self.life.setup.clock.advance(by);
    }

    /// The test's clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.life.setup.clock
    }

    /// A bean, as [`Application::bean`] gives it.
    ///
    /// # Panics
    /// When there is none of that name and type.
    #[must_use]
    #[track_caller]
    pub fn bean<T: Clone + 'static>(&self, name: &str) -> T {
        self.life.application.bean(name).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The one bean of a type, as [`Application::bean_of`] gives it.
    ///
    /// # Panics
    /// When there is none of that type, or more than one.
    #[must_use]
    #[track_caller]
    pub fn bean_of<T: Clone + 'static>(&self) -> T {
        self.life.application.bean_of().unwrap_or_else(|error| panic!("{error}"))
    }

    /// A template on the test's broker that names destinations as the application does.
    #[must_use]
    pub fn template(&self) -> &JmsTemplate {
        &self.template
    }

    /// The application itself.
    #[must_use]
    pub fn application(&self) -> &Application {
        &self.life.application
    }

    /// The test's broker.
    #[must_use]
    pub fn broker(&self) -> &Broker {
        &self.life.broker
    }

    /// The files in which the broker keeps its messages, to have them fail or to damage them.
    #[must_use]
    pub fn files(&self) -> &RecordedFiles {
        &self.life.files
    }

    /// The application itself, to be stopped; the broker goes on as long as a clone of it is kept.
    #[must_use]
    pub fn into_application(self) -> Application {
        self.life.application
    }

    fn container(&self, listener: &ListenerDef) -> &ListenerContainer {
        self.life.application.container(listener.id).unwrap_or_else(|| {
            panic!("listener `{}` was not started; name it in `.listeners([…])`", listener.id)
        })
    }

    fn source(&self, container: &ListenerContainer) -> Destination {
        let id = container.listener().id;
        let planned = self.life.application.planned().iter().find(|planned| planned.listener.id == id);
        match planned {
            Some(planned) => planned.settings.destination.clone(),
            None => panic!("listener `{id}` has a container and was not planned"),
        }
    }

    fn resolve(&self, destination: &str) -> Destination {
        self.life.application.destinations().resolve(destination).unwrap_or_else(|error| panic!("{error}"))
    }
}

impl fmt::Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Life")
            .field("application", &self.application)
            .field("broker", &self.broker)
            .finish_non_exhaustive()
    }
}

async fn in_time<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(output) => output,
        Err(_) => panic!("{what} has not come in {PATIENCE:?}"),
    }
}

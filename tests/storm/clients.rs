//! A client's life: it connects, works, is killed or cut off, and connects again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use corriere::core::{Connection, ConnectionFactory, Error};
use tokio::sync::Notify;

use crate::arena::Arena;
use crate::ledger::{Holder, Ledger};
use crate::line::Line;
use crate::plan::{Access, Transport};
use crate::storm::Storm;
use corriere_tests::random::Random;

/// What a client does while it is connected.
pub(crate) trait Role: Send {
    /// Works for a while; an error is the end of its connection. It may be dropped wherever it waits.
    fn work(
        &mut self,
        connection: &Connection,
        holder: &Arc<Holder>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Whether there is nothing more to do.
    fn is_over(&self) -> bool;
}

/// What a client is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Connecting,
    Working,
    Closing,
    Over,
}

/// A client as others see it.
#[derive(Debug)]
pub(crate) struct Client {
    who: String,
    factory: ConnectionFactory,
    line: Option<Line>,
    /// Whether it always leaves in order where the broker could not know otherwise that it is gone.
    is_polite: bool,
    killed: Notify,
    holder: Mutex<Option<Arc<Holder>>>,
    /// What it is at, for the report of a storm that hangs.
    stage: Mutex<Stage>,
}

impl Client {
    pub(crate) async fn new(arena: &Arena, who: String, access: &Access, is_polite: bool) -> Self {
        let line = match access.transport {
            Transport::Vm => None,
            Transport::Tcp => Some(Line::lay(arena.address()).await),
        };
        let url = line.as_ref().map_or_else(|| arena.vm_url(), Line::url);
        let is_polite = is_polite && access.transport == Transport::Tcp;
        Self {
            who,
            factory: factory(&url, access),
            line,
            is_polite,
            killed: Notify::new(),
            holder: Mutex::new(None),
            stage: Mutex::new(Stage::Connecting),
        }
    }

    pub(crate) fn who(&self) -> &str {
        &self.who
    }

    pub(crate) fn factory(&self) -> ConnectionFactory {
        self.factory.clone()
    }

    pub(crate) fn stage(&self) -> Stage {
        *self.stage.lock().unwrap()
    }

    fn is_at(&self, stage: Stage) {
        *self.stage.lock().unwrap() = stage;
    }

    /// Makes it vanish, at work or on the wire. Whether it did.
    pub(crate) fn kill(&self, random: &mut Random) -> bool {
        if self.is_polite {
            return false;
        }
        let Some(holder) = self.holder.lock().unwrap().clone() else { return false };
        match &self.line {
            Some(line) if random.one_in(2) => {
                holder.lose();
                line.cut();
            }
            _ => self.killed.notify_one(),
        }
        true
    }

    /// Cuts its line, if it has one and `lose` finds that there is somebody to lose. Whether it did.
    pub(crate) fn cut_after(&self, lose: impl FnOnce() -> bool) -> bool {
        match &self.line {
            Some(line) if lose() => {
                line.cut();
                true
            }
            _ => false,
        }
    }

    /// A connection to the broker as it is now; `None` when there is none.
    async fn connect(&self, ledger: &Ledger) -> Option<(Connection, Arc<Holder>)> {
        let holder = Arc::new(Holder::new(self.who.clone(), ledger.life()?));
        // From here on it can be lost.
        *self.holder.lock().unwrap() = Some(Arc::clone(&holder));
        let connection = self.factory().create_connection().await.ok()?;
        connection.start().ok()?;
        // Otherwise it may be connected to the broker of another life than it seems.
        (ledger.life() == Some(holder.life)).then_some((connection, holder))
    }
}

fn factory(url: &str, access: &Access) -> ConnectionFactory {
    let mut options = Vec::new();
    if access.is_optimized {
        options.push("jms.optimizeAcknowledge=true".to_owned());
        // Whoever waits for its next message tells of what it has put off all the same, so that a storm comes to rest.
        options.push("jms.optimizedAckScheduledAckInterval=500".to_owned());
    }
    if let Some(maximum) = access.maximum_redeliveries {
        options.push(format!("jms.redeliveryPolicy.maximumRedeliveries={maximum}"));
    }
    let query = if options.is_empty() { String::new() } else { format!("?{}", options.join("&")) };
    let factory = ConnectionFactory::from_url(&format!("{url}{query}")).unwrap();
    match &access.client_id {
        Some(client_id) => factory.with_client_id(client_id),
        None => factory,
    }
}

/// Lives until its role is over.
pub(crate) async fn live(storm: Arc<Storm>, client: Arc<Client>, mut random: Random, mut role: impl Role) {
    let ledger = &storm.ledger;
    while !role.is_over() {
        client.is_at(Stage::Connecting);
        let Some((connection, holder)) = client.connect(ledger).await else {
            tokio::time::sleep(Duration::from_millis(random.between(5, 25))).await;
            continue;
        };
        client.is_at(Stage::Working);
        let killed = async {
            client.killed.notified().await;
            // Before what it does is dropped, and with it the connection.
            holder.lose();
        };
        let outcome = tokio::select! {
            outcome = role.work(&connection, &holder) => outcome,
            () = killed => continue,
        };
        match outcome {
            Ok(()) => {
                client.is_at(Stage::Closing);
                holder.close();
                if connection.close().await.is_err() {
                    holder.lose();
                }
            }
            Err(error) => {
                if ledger.is_connected(&holder) {
                    ledger.violation(format!(
                        "{} failed, and nobody had done anything to it: {error}",
                        client.who
                    ));
                }
                holder.lose();
            }
        }
    }
    client.is_at(Stage::Over);
}

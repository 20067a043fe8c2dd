//! Connections that are listened to: what the client tells the broker of deliveries, in its order.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use corriere_core::provider::{
    Ack, AckKind, Capabilities, Command, ConnectOptions, DeliverySink, Provider, ProviderConnection,
    ProviderError, ProviderScheme, Receipt, provider_for,
};
use corriere_core::{AcknowledgeMode, Clock, Connection, ConnectionFactory, Session};

use crate::support::TestBroker;

inventory::submit! {
    ProviderScheme { scheme: "overheard", open }
}

/// What was said to each broker over connections that are listened to.
static OVERHEARD: Mutex<BTreeMap<String, Vec<Word>>> = Mutex::new(BTreeMap::new());

/// What a client said, or the test noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// This delivery, and all before it, were handed over: OpenWire's DELIVERED.
    HandedOver(u64),
    /// What became of these deliveries, by the name of the kind of acknowledgement.
    Acknowledged { kind: &'static str, first: u64, last: u64 },
    /// A commit.
    Committed,
    /// A rollback.
    RolledBack,
    /// A consumer was closed.
    Closed,
    /// A test's own.
    Note(String),
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HandedOver(number) => write!(f, "DELIVERED {number}"),
            Self::Acknowledged { kind, first, last } if first == last => write!(f, "{kind} {first}"),
            Self::Acknowledged { kind, first, last } => write!(f, "{kind} {first}-{last}"),
            Self::Committed => f.write_str("commit"),
            Self::RolledBack => f.write_str("rollback"),
            Self::Closed => f.write_str("close"),
            Self::Note(note) => f.write_str(note),
        }
    }
}

/// The name of a kind of acknowledgement, as OpenWire has it.
fn name(kind: &AckKind) -> &'static str {
    match kind {
        AckKind::Delivered => "DELIVERED",
        AckKind::Poison { .. } => "POISON",
        AckKind::Standard => "STANDARD",
        AckKind::Redelivered { .. } => "REDELIVERED",
        AckKind::Individual => "INDIVIDUAL",
        AckKind::Unmatched => "UNMATCHED",
        AckKind::Expired => "EXPIRED",
        AckKind::Undeliverable { .. } => "UNDELIVERABLE",
        AckKind::Retained => "RETAINED",
    }
}

pub(crate) fn note(broker: &str, word: Word) {
    OVERHEARD.lock().unwrap().entry(broker.to_owned()).or_default().push(word);
}

/// What was said since this was asked last.
pub(crate) fn take(broker: &TestBroker) -> Vec<Word> {
    OVERHEARD.lock().unwrap().remove(broker.broker.name()).unwrap_or_default()
}

/// The same in words.
pub(crate) fn said(broker: &TestBroker) -> Vec<String> {
    take(broker).iter().map(ToString::to_string).collect()
}

/// The same without the word that something was handed over.
pub(crate) fn acknowledged(broker: &TestBroker) -> Vec<String> {
    let words = take(broker).into_iter().filter(|word| !matches!(word, Word::HandedOver(_)));
    words.map(|word| word.to_string()).collect()
}

/// A factory with these URL options whose connections are listened to.
pub(crate) fn factory(broker: &TestBroker, options: &str) -> ConnectionFactory {
    ConnectionFactory::from_url(&format!("overheard://{}?{options}", broker.broker.name())).unwrap()
}

/// A connection that is listened to.
pub(crate) async fn connect(broker: &TestBroker, mode: AcknowledgeMode) -> (Connection, Session) {
    connect_with(broker, "", mode).await
}

/// The same with these URL options.
pub(crate) async fn connect_with(
    broker: &TestBroker,
    options: &str,
    mode: AcknowledgeMode,
) -> (Connection, Session) {
    let connection = factory(broker, options).create_connection().await.unwrap();
    connection.start().unwrap();
    let session = connection.create_session(mode).await.unwrap();
    (connection, session)
}

fn open(address: &str) -> Result<Arc<dyn Provider>, ProviderError> {
    let broker = address.trim_start_matches('/').to_owned();
    Ok(Arc::new(Overheard { broker, inner: provider_for("vm", address)? }))
}

#[derive(Debug)]
struct Overheard<P: ?Sized> {
    broker: String,
    inner: Arc<P>,
}

#[async_trait]
impl Provider for Overheard<dyn Provider> {
    fn clock(&self) -> Clock {
        self.inner.clock()
    }

    async fn connect(
        &self,
        options: ConnectOptions,
        sink: Arc<dyn DeliverySink>,
    ) -> Result<Arc<dyn ProviderConnection>, ProviderError> {
        let inner = self.inner.connect(options, sink).await?;
        Ok(Arc::new(Overheard { broker: self.broker.clone(), inner }))
    }
}

impl ProviderConnection for Overheard<dyn ProviderConnection> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn submit(&self, command: Command) -> Receipt {
        let word = match &command {
            Command::HandedOver { number, .. } => Some(Word::HandedOver(*number)),
            Command::Acknowledge(Ack { first, last, kind, .. }) => {
                Some(Word::Acknowledged { kind: name(kind), first: *first, last: *last })
            }
            Command::Commit { .. } => Some(Word::Committed),
            Command::Rollback { .. } => Some(Word::RolledBack),
            Command::CloseSubscription { .. } => Some(Word::Closed),
            _ => None,
        };
        if let Some(word) = word {
            note(&self.broker, word);
        }
        self.inner.submit(command)
    }
}

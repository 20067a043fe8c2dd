//! A client that knows nothing but the seam, for what is asked there directly.

use std::sync::{Arc, Mutex};

use corriere_core::id::{SessionId, SubscriptionId};
use corriere_core::provider::{
    Capability, Command, Confirmation, ConnectOptions, Credit, DeliverySink, Dispatch, Event,
    ProviderConnection, ProviderError, SessionMode, Subscribe, provider_for,
};
use corriere_core::{ConnectionId, Destination};

use crate::peer::{Peer, eventually, text, within};

/// What came to the client.
#[derive(Debug, Default)]
pub(crate) struct Came {
    pub(crate) deliveries: Mutex<Vec<Dispatch>>,
    pub(crate) events: Mutex<Vec<Event>>,
}

impl DeliverySink for Came {
    fn deliver(&self, batch: Vec<Dispatch>) {
        self.deliveries.lock().unwrap().extend(batch);
    }

    fn notify(&self, event: Event) {
        self.events.lock().unwrap().push(event);
    }
}

/// A connection with one session.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: ConnectionId,
    pub(crate) came: Arc<Came>,
    connection: Arc<dyn ProviderConnection>,
}

/// The session.
pub(crate) const SESSION: SessionId = SessionId(1);

impl Client {
    pub(crate) async fn connect(peer: &Peer) -> Self {
        let (scheme, address) = peer.url().split_once(':').unwrap();
        let provider = provider_for(scheme, address.trim_start_matches('/')).unwrap();
        let (id, came) = (ConnectionId::unique(), Arc::new(Came::default()));
        let options = ConnectOptions { connection: id.clone(), client_id: None, user: None, password: None };
        let connection = within(provider.connect(options, came.clone())).await.unwrap();
        let client = Self { id, came, connection };
        client.ask(Command::OpenSession { session: SESSION, mode: SessionMode::Client }).await.unwrap();
        client
    }

    /// Whether the peer has this at all.
    pub(crate) fn offers(&self, capability: Capability) -> bool {
        self.connection.capabilities().has(capability)
    }

    /// Submits a command and waits for what it came to.
    pub(crate) async fn ask(&self, command: Command) -> Result<Confirmation, ProviderError> {
        within(self.connection.submit(command)).await
    }

    /// Submits a command, and waits for nothing.
    pub(crate) fn tell(&self, command: Command) {
        self.connection.tell(command);
    }

    /// Opens a consumer with a window of 10.
    pub(crate) async fn consume(
        &self,
        number: u64,
        destination: &Destination,
    ) -> Result<Confirmation, ProviderError> {
        let subscribe = Subscribe {
            subscription: SubscriptionId(number),
            session: SESSION,
            destination: destination.clone(),
            credit: Credit::Window { prefetch: 10, extension: Some(5) },
            selector: None,
            no_local: false,
            is_default_credit: false,
            durable_name: None,
            redelivery: None,
        };
        self.ask(Command::OpenSubscription(Box::new(subscribe))).await
    }

    /// The texts that came, once there are so many.
    pub(crate) async fn texts(&self, count: usize) -> Vec<String> {
        eventually("what came", || {
            let there = self.came.deliveries.lock().unwrap().len();
            if there >= count { Ok(()) } else { Err(format!("{there} messages")) }
        })
        .await;
        let deliveries = self.came.deliveries.lock().unwrap();
        deliveries.iter().map(|dispatch| text(&dispatch.message).to_owned()).collect()
    }

    /// Waits for an event.
    pub(crate) async fn event(&self, what: &str, is_it: impl Fn(&Event) -> bool) {
        eventually(what, || {
            let events = self.came.events.lock().unwrap();
            if events.iter().any(&is_it) { Ok(()) } else { Err(format!("{events:?}")) }
        })
        .await;
    }
}

/// That a peer says by name what it does not offer.
pub(crate) fn assert_not_offered<T: std::fmt::Debug>(outcome: Result<T, ProviderError>) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, ProviderError::Unsupported(_) | ProviderError::Refused { .. }), "{error}");
}

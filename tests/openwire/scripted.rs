//! A provider that does what a test says, for what the embedded broker never does.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use corriere_core::SubscriptionId;
use corriere_core::provider::{
    Capabilities, Capability, Command, Confirmation, ConnectOptions, DeliverySink, Dispatch, Event, Provider,
    ProviderConnection, ProviderError, Receipt, Subscribe,
};
use corriere_openwire::acceptor::{Acceptor, AcceptorOptions};

use crate::peer::Peer;

/// It confirms whatever it is asked unless a test says otherwise, and notes what it was asked.
#[derive(Debug, Default)]
pub(crate) struct Scripted {
    sink: Mutex<Option<Arc<dyn DeliverySink>>>,
    /// What it can do.
    capabilities: Capabilities,
    /// What it refuses next.
    refuses: Mutex<Option<ProviderError>>,
    /// All but sessions and producers.
    pub(crate) asked: Mutex<Vec<Command>>,
    pub(crate) opened: Mutex<Vec<SubscriptionId>>,
    pub(crate) closed: Mutex<Vec<SubscriptionId>>,
}

#[derive(Debug)]
struct Connection(Arc<Scripted>);

/// What an acceptor needs.
#[derive(Debug)]
struct Shared(Arc<Scripted>);

impl Scripted {
    /// It, an acceptor that serves it, and a peer that has introduced itself.
    pub(crate) async fn served() -> (Arc<Self>, Acceptor, Peer) {
        let (scripted, acceptor) = Self::listening(&[]).await;
        let mut peer = Peer::greet(acceptor.local_address()).await;
        peer.introduce().await;
        (scripted, acceptor, peer)
    }

    /// It with these capabilities, and an acceptor that serves it.
    pub(crate) async fn listening(capabilities: &[Capability]) -> (Arc<Self>, Acceptor) {
        let capabilities = Capabilities::of(capabilities);
        let scripted = Arc::new(Self { capabilities, ..Self::default() });
        let provider = Arc::new(Shared(Arc::clone(&scripted)));
        let acceptor =
            Acceptor::bind("tcp://127.0.0.1:0", provider, AcceptorOptions::default()).await.unwrap();
        (scripted, acceptor)
    }

    /// Refuses the next command.
    pub(crate) fn refuse(&self, error: ProviderError) {
        *self.refuses.lock().unwrap() = Some(error);
    }

    /// What it was asked since the last time, in words.
    pub(crate) fn asked(&self) -> Vec<String> {
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.iter().map(|command| format!("{command:?}")).collect()
    }

    /// The subscription that was opened last.
    pub(crate) fn last_opened(&self) -> Subscribe {
        let asked = self.asked.lock().unwrap();
        let opened = asked.iter().rev().find_map(|command| match command {
            Command::OpenSubscription(subscribe) => Some((**subscribe).clone()),
            _ => None,
        });
        opened.expect("a subscription was opened")
    }

    pub(crate) fn notify(&self, event: Event) {
        self.sink.lock().unwrap().as_ref().unwrap().notify(event);
    }

    pub(crate) fn deliver(&self, dispatch: Dispatch) {
        self.sink.lock().unwrap().as_ref().unwrap().deliver(vec![dispatch]);
    }
}

#[async_trait]
impl Provider for Shared {
    async fn connect(
        &self,
        _: ConnectOptions,
        sink: Arc<dyn DeliverySink>,
    ) -> Result<Arc<dyn ProviderConnection>, ProviderError> {
        *self.0.sink.lock().unwrap() = Some(sink);
        Ok(Arc::new(Connection(Arc::clone(&self.0))))
    }
}

impl ProviderConnection for Connection {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities
    }

    fn submit(&self, command: Command) -> Receipt {
        let note = |list: &Mutex<Vec<_>>, subscription| list.lock().unwrap().push(subscription);
        match &command {
            Command::OpenSubscription(subscribe) => note(&self.0.opened, subscribe.subscription),
            Command::CloseSubscription { subscription, .. } => note(&self.0.closed, *subscription),
            Command::OpenSession { .. } | Command::OpenProducer { .. } | Command::CloseProducer { .. } => {
                return Receipt::ready(Ok(Confirmation::Done));
            }
            _ => {}
        }
        self.0.asked.lock().unwrap().push(command);
        let refused = self.0.refuses.lock().unwrap().take();
        Receipt::ready(refused.map_or(Ok(Confirmation::Done), Err))
    }
}

//! A provider that does what a test says, for what the embedded broker never does.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use corriere_core::SubscriptionId;
use corriere_core::provider::{
    Capabilities, Command, Confirmation, ConnectOptions, DeliverySink, Dispatch, Event, Provider,
    ProviderConnection, ProviderError, Receipt,
};
use corriere_openwire::acceptor::{Acceptor, AcceptorOptions};

use crate::peer::Peer;

/// It confirms whatever it is asked, and notes which subscriptions were opened and closed.
#[derive(Debug, Default)]
pub(crate) struct Scripted {
    sink: Mutex<Option<Arc<dyn DeliverySink>>>,
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
        let scripted = Arc::new(Self::default());
        let provider = Arc::new(Shared(Arc::clone(&scripted)));
        let acceptor =
            Acceptor::bind("tcp://127.0.0.1:0", provider, AcceptorOptions::default()).await.unwrap();
        let mut peer = Peer::greet(acceptor.local_address()).await;
        peer.introduce().await;
        (scripted, acceptor, peer)
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
        Capabilities::default()
    }

    fn submit(&self, command: Command) -> Receipt {
        let note = |list: &Mutex<Vec<_>>, subscription| list.lock().unwrap().push(subscription);
        match command {
            Command::OpenSubscription(subscribe) => note(&self.0.opened, subscribe.subscription),
            Command::CloseSubscription { subscription, .. } => note(&self.0.closed, subscription),
            _ => {}
        }
        Receipt::ready(Ok(Confirmation::Done))
    }
}

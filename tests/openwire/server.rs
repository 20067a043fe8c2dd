//! A broker with an acceptor for each test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use corriere_broker::store::MemoryStore;
use corriere_broker::{Broker, Counts, Settings};
use corriere_core::{Clock, Destination, RedeliveryPolicy, Timestamp};
use corriere_openwire::acceptor::{Acceptor, AcceptorOptions};
use corriere_openwire::structures::{self as wire, FlushCommand};

use crate::peer::Peer;

/// A broker whose time is the test's, and its acceptor on a free port.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) broker: Broker,
    pub(crate) clock: Clock,
    pub(crate) acceptor: Acceptor,
}

/// Two redeliveries, without delay.
pub(crate) fn settings() -> Settings {
    let redelivery = RedeliveryPolicy {
        maximum_redeliveries: Some(2),
        initial_delay: Duration::ZERO,
        delay: Duration::ZERO,
        ..RedeliveryPolicy::default()
    };
    Settings { redelivery, ..Settings::default() }
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with("", settings(), AcceptorOptions::default()).await
    }

    /// With these options behind the address.
    pub(crate) async fn with(url_options: &str, settings: Settings, options: AcceptorOptions) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let name = format!("openwire-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let clock = Clock::manual(Timestamp(1_700_000_000_000));
        let broker = Broker::start(&name, settings, Arc::new(MemoryStore), clock.clone()).unwrap();
        let url = format!("tcp://127.0.0.1:0{url_options}");
        let acceptor = Acceptor::bind(&url, Arc::new(broker.clone()), options).await.unwrap();
        Self { broker, clock, acceptor }
    }

    /// A peer with whom the wire format is agreed on.
    pub(crate) async fn peer(&self) -> Peer {
        Peer::greet(self.acceptor.local_address()).await
    }

    /// A peer that has introduced itself, with an id of its own.
    pub(crate) async fn client(&self) -> Peer {
        let mut peer = self.peer().await;
        peer.introduce().await;
        peer
    }

    pub(crate) fn counts(&self, destination: &wire::Destination) -> Counts {
        let destination: Destination = destination.to_core().unwrap();
        self.broker.counts(&destination).unwrap_or_default()
    }

    /// Waits until a condition of the broker's holds.
    pub(crate) async fn until(&self, what: &str, condition: impl Fn(&Broker) -> bool) {
        for _ in 0..10_000 {
            if condition(&self.broker) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("{what} never came");
    }

    /// Waits until nothing more happens, and returns what is then: until it has stayed the same over many commands of another
    /// peer. The acceptor has this thread too, and takes them in turn with all else that it could read or write.
    pub(crate) async fn until_still<T: PartialEq>(&self, mut watched: impl FnMut() -> T) -> T {
        let mut other = self.client().await;
        let mut last = watched();
        let mut since = 0;
        for _ in 0..100_000 {
            other.request(FlushCommand::default()).await;
            let now = watched();
            since = if now == last { since + 1 } else { 0 };
            last = now;
            if since == 50 {
                return last;
            }
        }
        panic!("it goes on and on");
    }

    /// Waits until so many messages of a destination are pending, and none is in flight.
    pub(crate) async fn until_waiting(&self, destination: &wire::Destination, pending: u64) {
        self.until("what is waited for", |_| {
            let counts = self.counts(destination);
            counts.pending == pending && counts.in_flight == 0
        })
        .await;
    }
}

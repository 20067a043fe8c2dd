//! A client of durable subscriptions, under a client id, as the broker's seam sees it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use corriere_core::id::{ConnectionId, ProducerId, SessionId, SubscriptionId, TransactionId};
use corriere_core::provider::{
    Ack, AckKind, Command, Confirmation, ConnectOptions, Credit, DeliverySink, Dispatch, Event,
    Provider as _, ProviderConnection, ProviderError, SendMessage, SessionMode, Subscribe,
};
use corriere_core::{Destination, Message, MessageId};
use tokio::sync::Notify;

use crate::support::{Running, within};

const SESSION: SessionId = SessionId(1);
pub(crate) const PRODUCER: ProducerId = ProducerId(1);

pub(crate) fn prices() -> Destination {
    Destination::topic("prices").unwrap()
}

/// What was delivered to a client.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    deliveries: Mutex<VecDeque<Dispatch>>,
    arrived: Notify,
}

impl DeliverySink for Inbox {
    fn deliver(&self, batch: Vec<Dispatch>) {
        self.deliveries.lock().unwrap().extend(batch);
        self.arrived.notify_one();
    }

    fn notify(&self, _: Event) {}
}

/// A client under an id of its own, with one session.
pub(crate) struct Client {
    connection: Arc<dyn ProviderConnection>,
    inbox: Arc<Inbox>,
    identity: Arc<str>,
    sent: AtomicU64,
    subscriptions: AtomicU64,
}

impl Client {
    pub(crate) async fn connect(broker: &Running, client_id: Option<&str>) -> Self {
        Self::try_connect(broker, client_id).await.unwrap()
    }

    pub(crate) async fn try_connect(
        broker: &Running,
        client_id: Option<&str>,
    ) -> Result<Self, ProviderError> {
        let inbox = Arc::new(Inbox::default());
        let connection = ConnectionId::unique();
        let identity = format!("{connection}:1").into();
        let client_id = client_id.map(Into::into);
        let options = ConnectOptions { connection, client_id, user: None, password: None };
        let sink = Arc::clone(&inbox) as Arc<dyn DeliverySink>;
        let connection = within(broker.broker.connect(options, sink)).await?;
        let (sent, subscriptions) = (AtomicU64::new(0), AtomicU64::new(0));
        let client = Self { connection, inbox, identity, sent, subscriptions };
        client.ask(Command::OpenSession { session: SESSION, mode: SessionMode::Client }).await?;
        let identity = Arc::clone(&client.identity);
        let open =
            Command::OpenProducer { producer: PRODUCER, session: SESSION, identity, destination: None };
        client.ask(open).await?;
        Ok(client)
    }

    pub(crate) async fn ask(&self, command: Command) -> Result<Confirmation, ProviderError> {
        within(self.connection.submit(command)).await
    }

    #[track_caller]
    pub(crate) fn done(&self, command: Command) -> impl Future<Output = ()> {
        let asked = self.ask(command);
        async { assert_eq!(asked.await, Ok(Confirmation::Done)) }
    }

    /// Consumes from a durable subscription.
    pub(crate) async fn subscribe(&self, name: &str) -> SubscriptionId {
        self.try_subscribe(name).await.unwrap()
    }

    pub(crate) async fn try_subscribe(&self, name: &str) -> Result<SubscriptionId, ProviderError> {
        let subscription = SubscriptionId(self.subscriptions.fetch_add(1, Ordering::Relaxed) + 1);
        let subscribe = Subscribe {
            subscription,
            session: SESSION,
            destination: prices(),
            credit: Credit::Window { prefetch: 10, extension: None },
            is_default_credit: false,
            selector: None,
            no_local: false,
            durable_name: Some(name.into()),
            redelivery: None,
        };
        self.ask(Command::OpenSubscription(Box::new(subscribe))).await?;
        Ok(subscription)
    }

    pub(crate) fn message(&self, text: String) -> Arc<Message> {
        let sequence = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
        let mut message = Message::text(text);
        message.headers_mut().destination = Some(prices());
        message.headers_mut().message_id = Some(MessageId { producer: Arc::clone(&self.identity), sequence });
        Arc::new(message)
    }

    pub(crate) async fn publish(&self, text: impl Into<String>) {
        self.publish_in(text, None).await;
    }

    pub(crate) async fn publish_in(&self, text: impl Into<String>, transaction: Option<TransactionId>) {
        self.try_publish(text, transaction).await.unwrap();
    }

    pub(crate) async fn try_publish(
        &self,
        text: impl Into<String>,
        transaction: Option<TransactionId>,
    ) -> Result<Confirmation, ProviderError> {
        let message = self.message(text.into());
        self.ask(Command::Send(SendMessage { producer: PRODUCER, message, transaction, deadline: None }))
            .await
    }

    /// The next delivery: its number, its text, and which delivery it is.
    pub(crate) async fn next(&self) -> (u64, String, u32) {
        let next = within(async {
            loop {
                if let Some(next) = self.inbox.deliveries.lock().unwrap().pop_front() {
                    return next;
                }
                self.inbox.arrived.notified().await;
            }
        });
        let next = next.await;
        (next.number, next.message.as_text().unwrap().unwrap().to_owned(), next.delivery_count)
    }

    pub(crate) async fn acknowledge(&self, subscription: SubscriptionId, number: u64) {
        self.acknowledge_in(subscription, number, None).await;
    }

    pub(crate) async fn acknowledge_in(
        &self,
        subscription: SubscriptionId,
        number: u64,
        transaction: Option<TransactionId>,
    ) {
        let (first, last, kind) = (number, number, AckKind::Standard);
        self.done(Command::Acknowledge(Ack { subscription, first, last, kind, transaction })).await;
    }

    /// Receives and settles so many, which must be their first deliveries.
    pub(crate) async fn take(&self, subscription: SubscriptionId, count: usize) -> Vec<String> {
        let mut texts = Vec::new();
        for _ in 0..count {
            let (number, text, delivery) = self.next().await;
            assert_eq!(delivery, 1, "{text}");
            self.acknowledge(subscription, number).await;
            texts.push(text);
        }
        texts
    }

    pub(crate) async fn unsubscribe(&self, name: &str) -> Result<Confirmation, ProviderError> {
        self.ask(Command::Unsubscribe { name: name.into() }).await
    }

    pub(crate) async fn close(self) {
        self.done(Command::Close).await;
    }
}

/// Has a client make these subscriptions and go.
pub(crate) async fn leave(broker: &Running, client_id: &str, names: &[&str]) {
    let client = Client::connect(broker, Some(client_id)).await;
    for name in names {
        client.subscribe(name).await;
    }
    client.close().await;
}

//! Who is at the other end, and what tests do with whoever it is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use corriere_broker::store::MemoryStore;
use corriere_broker::{Broker, Counts, Settings};
use corriere_core::provider::Cause;
use corriere_core::{
    AcknowledgeMode, Clock, Connection, ConnectionFactory, Consumer, Delivery, Destination, Message, Release,
    Session,
};
use corriere_openwire::acceptor::{Acceptor, AcceptorOptions};

use corriere_tests::java::ActiveMq;

pub(crate) use corriere_tests::receiving::*;

/// Options with which nothing waits for its redelivery, and two of them are made.
pub(crate) const AT_ONCE: &str = "jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.redeliveryDelay=0\
                                  &jms.redeliveryPolicy.maximumRedeliveries=2";

/// Options with which nothing waits for its redelivery, and nothing dies, however often it came already.
pub(crate) const ENDLESS: &str = "jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.redeliveryDelay=0\
                                  &jms.redeliveryPolicy.maximumRedeliveries=-1";

/// A broker, and how it is reached.
#[derive(Debug)]
pub(crate) struct Peer {
    url: String,
    kind: Kind,
    /// What makes destinations of this test its own.
    test: u64,
    broker: Option<Broker>,
    _acceptor: Option<Acceptor>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Vm,
    Corriere,
    ActiveMq,
}

impl Peer {
    /// A broker in this process, whose time is the machine's.
    pub(crate) fn vm() -> Self {
        let test = next_test();
        let name = format!("remote-{test}");
        let broker =
            Broker::start(&name, Settings::default(), Arc::new(MemoryStore), Clock::system()).unwrap();
        Self { broker: Some(broker), ..Self::of(Kind::Vm, format!("vm://{name}"), test) }
    }

    /// The same behind an acceptor.
    pub(crate) async fn corriere() -> Self {
        Self::corriere_with("").await
    }

    /// The same behind an acceptor with these options.
    pub(crate) async fn corriere_with(options: &str) -> Self {
        let peer = Self::vm();
        let broker = Arc::new(peer.broker.clone().unwrap());
        let url = format!("tcp://127.0.0.1:0?{options}");
        let acceptor = Acceptor::bind(&url, broker, AcceptorOptions::default()).await.unwrap();
        Self { url: acceptor.url(), kind: Kind::Corriere, _acceptor: Some(acceptor), ..peer }
    }

    /// The same with frames of 64 KiB at most, and where it is reached without.
    pub(crate) async fn narrow_corriere() -> (Self, Self) {
        let wide = Self::vm();
        let broker = wide.broker.clone().unwrap();
        let url = "tcp://127.0.0.1:0?wireFormat.maxFrameSize=65536";
        let acceptor =
            Acceptor::bind(url, Arc::new(broker.clone()), AcceptorOptions::default()).await.unwrap();
        let narrow = Self::of(Kind::Corriere, acceptor.url(), wide.test);
        (Self { broker: Some(broker), _acceptor: Some(acceptor), ..narrow }, wide)
    }

    /// The ActiveMQ that all tests share.
    pub(crate) fn activemq() -> Self {
        static SHARED: OnceLock<ActiveMq> = OnceLock::new();
        let broker = SHARED.get_or_init(ActiveMq::start);
        Self::of(Kind::ActiveMq, broker.url().to_owned(), next_test())
    }

    fn of(kind: Kind, url: String, test: u64) -> Self {
        Self { url, kind, test, broker: None, _acceptor: None }
    }

    /// An ActiveMQ of this test's own, to be killed.
    pub(crate) fn mortal_activemq() -> (Self, ActiveMq) {
        let broker = ActiveMq::start();
        (Self { url: broker.url().to_owned(), ..Self::activemq() }, broker)
    }

    /// Where the dead letters of a queue or a topic are, of this test's own.
    pub(crate) fn dead_letters_of(&self, destination: &Destination) -> Destination {
        let kind = if destination.is_topic() { "topic." } else { "" };
        queue(&format!("DLQ.{kind}{}", destination.name()))
    }

    /// Takes so many dead letters of a destination, by their texts, and finds no more.
    pub(crate) async fn dead_letters(&self, of: &Destination, count: usize) -> Vec<Message> {
        let session = self.session(AcknowledgeMode::Auto).await;
        let consumer = within(session.create_consumer(&self.dead_letters_of(of))).await.unwrap();
        let mut letters = Vec::new();
        for _ in 0..count {
            letters.push(next(&consumer).await.into_message());
        }
        let more = within(consumer.receive_no_wait()).await.unwrap();
        assert!(more.is_none(), "{of} has more than {count} dead letters");
        within(session.close()).await.unwrap();
        letters.sort_by(|one, other| text(one).cmp(text(other)));
        letters
    }

    /// Where it is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Whether it is one of ours.
    pub(crate) fn is_ours(&self) -> bool {
        self.kind != Kind::ActiveMq
    }

    /// Whether it is in this process, so that what was sent is with a consumer that has room for it when the send is over.
    pub(crate) fn is_here(&self) -> bool {
        self.kind == Kind::Vm
    }

    /// A queue of this test's own.
    pub(crate) fn queue(&self, name: &str) -> Destination {
        queue(&format!("remote.{}.{name}", self.test))
    }

    /// A topic of this test's own.
    pub(crate) fn topic(&self, name: &str) -> Destination {
        Destination::topic(&format!("remote.{}.{name}", self.test)).unwrap()
    }

    pub(crate) fn factory(&self, options: &str) -> ConnectionFactory {
        ConnectionFactory::from_url(&format!("{}?{options}", self.url)).unwrap()
    }

    /// A started connection with these options.
    pub(crate) async fn connect(&self, options: &str) -> Connection {
        let connection = within(self.factory(options).create_connection()).await.unwrap();
        connection.start().unwrap();
        connection
    }

    /// The option of a client id of this test's own.
    pub(crate) fn client_id(&self, name: &str) -> String {
        format!("jms.clientID=remote-{}-{name}", self.test)
    }

    /// A session of this client on a connection of its own, without delays of redelivery.
    pub(crate) async fn session_of(&self, client: &str, mode: AcknowledgeMode) -> (Connection, Session) {
        let connection = self.connect(&format!("{AT_ONCE}&{}", self.client_id(client))).await;
        let session = within(connection.create_session(mode)).await.unwrap();
        (connection, session)
    }

    /// A session on a connection of its own, without delays of redelivery.
    pub(crate) async fn session(&self, mode: AcknowledgeMode) -> Session {
        within(self.connect(AT_ONCE).await.create_session(mode)).await.unwrap()
    }

    /// Sends `m1`, `m2` and so on from a connection of its own.
    pub(crate) async fn send_numbered(&self, destination: &Destination, count: usize) {
        let session = self.session(AcknowledgeMode::Auto).await;
        for number in 1..=count {
            send_text(&session, destination, &format!("m{number}")).await;
        }
    }

    /// What the broker counts, where it is ours.
    pub(crate) fn counts(&self, destination: &Destination) -> Counts {
        self.broker.as_ref().unwrap().counts(destination).unwrap_or_default()
    }

    /// Waits until all that is in a queue of ours is with nobody, as is so once the broker knows that a client is gone.
    pub(crate) async fn until_nothing_is_in_flight(&self, destination: &Destination) {
        eventually("the client to be gone", || {
            let counts = self.counts(destination);
            if counts.in_flight == 0 { Ok(()) } else { Err(format!("{counts:?}")) }
        })
        .await;
    }

    /// What comes of a queue that nobody else has, up to this many messages, and nothing more.
    pub(crate) async fn drain(&self, destination: &Destination, count: usize) -> Vec<Seen> {
        let connection = self.connect(ENDLESS).await;
        let session = within(connection.create_session(AcknowledgeMode::Auto)).await.unwrap();
        let consumer = within(session.create_consumer_with_prefetch(destination, 0)).await.unwrap();
        let seen = see(&consumer, count).await;
        assert!(
            within(consumer.receive_no_wait()).await.unwrap().is_none(),
            "{destination} has more than {count}"
        );
        within(consumer.close()).await.unwrap();
        seen
    }
}

/// The next message, which must come, to be settled by itself in a session that settles several.
pub(crate) async fn take(consumer: &Consumer) -> Delivery {
    within(consumer.take()).await.unwrap().unwrap().into_single()
}

/// A failure after which a message comes again, by its policy or after this delay.
pub(crate) fn again(delay: Option<Duration>) -> Release {
    Release::Redeliver { delay, cause: Cause::failure("it is raining") }
}

fn next_test() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

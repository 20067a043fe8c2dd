//! What the broker hears while a handler keeps its thread: the message that it was handed counts, whatever becomes of its process.

use std::sync::{Mutex, mpsc};

use corriere_core::AcknowledgeMode::{self, Auto, Client, DupsOk};
use corriere_core::{
    ConnectionFactory, Consumer, Delivery, DeliveryMode, Destination, Message, SendOptions, Session,
};
use corriere_tests::apart::Apart;
use tokio::sync::mpsc::unbounded_channel;

use crate::cable::Cable;
use crate::peer::{AT_ONCE, Peer, eventually, text, within};

/// How often [`AT_ONCE`] has a message delivered before it is a dead letter.
const DELIVERIES: usize = 3;

/// A handler of this kind that kills its process would otherwise be given the same message for ever.
#[tokio::test]
async fn a_handler_that_never_lets_go_of_its_thread_has_a_message_that_counts() {
    let peer = Peer::corriere().await;
    let (queue, factory, client) = (peer.queue("q"), peer.factory(""), Apart::start());
    let (free, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let listens_to = queue.clone();
    let listening = client.run(async move {
        let connection = factory.create_connection().await.unwrap();
        connection.start().unwrap();
        let session = connection.create_session(Client).await.unwrap();
        let consumer = session.create_consumer_with_prefetch(&listens_to, 1).await.unwrap();
        let keeps_its_thread = move |_| {
            let _ = gate.lock().unwrap().recv();
            async { Ok(()) }
        };
        consumer.set_message_listener(keeps_its_thread).unwrap();
        consumer
    });
    let _consumer = within(listening).await;
    peer.send_numbered(&queue, 2).await;
    // The second one comes when the first is known to have been handed over, and no sooner.
    eventually("the broker to know of the hand-over", || {
        let counts = peer.counts(&queue);
        if counts.in_flight == 2 { Ok(()) } else { Err(format!("{counts:?}")) }
    })
    .await;
    drop(free);
}

/// A client whose acknowledgements are put off, and whose listener kills its process with one of the messages.
#[derive(Clone, Copy, Debug)]
struct Deadly {
    options: &'static str,
    mode: AcknowledgeMode,
    is_durable: bool,
    /// How the message before the deadly one was sent.
    before: DeliveryMode,
}

const OPTIMIZED: Deadly = Deadly {
    options: "jms.prefetchPolicy.all=100&jms.optimizeAcknowledge=true&jms.optimizeAcknowledgeTimeOut=0",
    mode: Auto,
    is_durable: false,
    before: DeliveryMode::Persistent,
};

const DUPS_OK: Deadly =
    Deadly { options: "jms.prefetchPolicy.all=100", mode: DupsOk, is_durable: true, ..OPTIMIZED };

impl Deadly {
    async fn consumer(self, session: &Session, destination: &Destination) -> Consumer {
        let consumer = if self.is_durable {
            within(session.create_durable_consumer(destination, "audit")).await
        } else {
            within(session.create_consumer(destination)).await
        };
        consumer.unwrap()
    }

    fn options(self, peer: &Peer) -> String {
        format!("{AT_ONCE}&{}&{}", self.options, peer.client_id("deadly"))
    }

    /// Handles messages until the deadly one, of which the process dies, or until the last one. What it handled.
    async fn live(self, peer: &Peer, destination: &Destination) -> Vec<String> {
        let cable = Cable::to(peer.url()).await;
        let factory = format!("{}?{}", cable.url(), self.options(peer));
        let factory = ConnectionFactory::from_url(&factory).unwrap();
        let connection = within(factory.create_connection()).await.unwrap();
        let session = within(connection.create_session(self.mode)).await.unwrap();
        let consumer = self.consumer(&session, destination).await;
        let (began, mut begun) = unbounded_channel();
        let listener = move |delivery: Delivery| {
            let text = text(&delivery).to_owned();
            let is_deadly = text == "deadly";
            began.send(text).unwrap();
            async move { if is_deadly { std::future::pending().await } else { Ok(()) } }
        };
        consumer.set_message_listener(listener).unwrap();
        connection.start().unwrap();
        let mut handled = Vec::new();
        while !handled.last().is_some_and(|text| text == "deadly" || text == "last") {
            handled.push(within(begun.recv()).await.unwrap());
        }
        if handled.last().is_some_and(|text| text == "last") {
            within(connection.close()).await.unwrap();
            return handled;
        }
        // What was said before the handler began is with the broker when it has answered this.
        let beside = within(connection.create_session(Auto)).await.unwrap();
        within(beside.create_consumer(&peer.queue("beside"))).await.unwrap();
        cable.cut();
        peer.until_nothing_is_in_flight(destination).await;
        handled
    }

    /// The deadly message is behind two others and before the last one. How many lives it takes until that is handled.
    async fn lives(self) -> usize {
        let peer = Peer::corriere().await;
        let destination = if self.is_durable { peer.topic("deadly") } else { peer.queue("deadly") };
        {
            let connection = peer.connect(&self.options(&peer)).await;
            let session = within(connection.create_session(Auto)).await.unwrap();
            let consumer = self.consumer(&session, &destination).await;
            within(consumer.close()).await.unwrap();
            for (text, mode) in [
                ("one", DeliveryMode::Persistent),
                ("two", self.before),
                ("deadly", DeliveryMode::Persistent),
                ("last", DeliveryMode::Persistent),
            ] {
                let options = SendOptions { delivery_mode: Some(mode), ..SendOptions::default() };
                within(session.send(&destination, &Message::text(text), &options)).await.unwrap();
            }
            within(connection.close()).await.unwrap();
        }
        let mut handled = Vec::new();
        for life in 1..=20 {
            let now = self.live(&peer, &destination).await;
            let is_over = now.last().is_some_and(|text| text == "last");
            handled.extend(now);
            if is_over {
                for text in ["one", "two"] {
                    assert!(handled.iter().any(|other| other == text), "{self:?}: {handled:?}");
                }
                let letters = peer.dead_letters(&destination, 1).await;
                assert_eq!(text(&letters[0]), "deadly", "{self:?}: {handled:?}");
                let count = letters[0].property::<i32>("JMSXDeliveryCount").unwrap();
                assert_eq!(count, Some(i32::try_from(DELIVERIES).unwrap()), "{self:?}: {handled:?}");
                return life;
            }
        }
        panic!("{self:?} does not end: {handled:?}");
    }
}

/// Two lives for the two before it, then those of the deadly one, and the last one.
#[tokio::test]
async fn a_message_that_kills_every_process_dies_in_the_end_where_acknowledgements_are_put_off() {
    for deadly in [OPTIMIZED, DUPS_OK] {
        assert_eq!(deadly.lives().await, 2 + DELIVERIES + 1, "{deadly:?}");
    }
}

#[tokio::test]
async fn a_message_that_is_not_persistent_keeps_no_deadly_one_behind_it_alive() {
    for deadly in [OPTIMIZED, DUPS_OK] {
        let deadly = Deadly { before: DeliveryMode::NonPersistent, ..deadly };
        assert!(deadly.lives().await <= 2 + DELIVERIES + 1, "{deadly:?}");
    }
}

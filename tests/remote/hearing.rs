//! What the broker hears while a handler keeps its thread: the message that it was handed counts, whatever becomes of its process.

use std::sync::{Mutex, mpsc};

use corriere_core::AcknowledgeMode::Client;
use corriere_tests::apart::Apart;

use crate::peer::{Peer, eventually, within};

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

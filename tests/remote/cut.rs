//! A network that fails under a client: nobody closes anything, and nothing may be lost, counted wrongly or held up.

use corriere_core::AcknowledgeMode::{Auto, Client, Individual, Transacted};
use corriere_core::provider::ProviderError;
use corriere_core::{Connection, ConnectionFactory, Error, Message, SendOptions};

use crate::cable::Cable;
use crate::peer::{AT_ONCE, Peer, first, firsts, next, nth, see, send_text, within};

/// The factory of clients at this end of a cable.
fn factory(cable: &Cable, options: &str) -> ConnectionFactory {
    ConnectionFactory::from_url(&format!("{}?{options}", cable.url())).unwrap()
}

async fn connect(cable: &Cable) -> Connection {
    let connection = within(factory(cable, AT_ONCE).create_connection()).await.unwrap();
    connection.start().unwrap();
    connection
}

/// C-02, with a network that is cut in place of the close.
#[tokio::test]
async fn what_only_sat_in_the_buffer_of_a_client_that_is_cut_off_is_not_counted() {
    let peer = Peer::corriere().await;
    let cable = Cable::to(peer.url()).await;
    let q = peer.queue("q");
    peer.send_numbered(&q, 20).await;
    let mut seen = Vec::new();
    for _ in 0..5 {
        let connection = connect(&cable).await;
        let session = within(connection.create_session(Transacted)).await.unwrap();
        let consumer = within(session.create_consumer_with_prefetch(&q, 20)).await.unwrap();
        seen.extend(see(&consumer, 1).await);
        within(session.rollback()).await.unwrap();
        cable.cut();
        peer.until_nothing_is_in_flight(&q).await;
    }
    assert_eq!(seen, [first("m1"), nth("m1", 2), nth("m1", 3), first("m2"), nth("m2", 2)]);
    let connection = connect(&cable).await;
    let session = within(connection.create_session(Transacted)).await.unwrap();
    let consumer = within(session.create_consumer_with_prefetch(&q, 20)).await.unwrap();
    let mut expected = vec![nth("m2", 3)];
    expected.extend(firsts(3..=20));
    assert_eq!(see(&consumer, 19).await, expected);
    within(session.commit()).await.unwrap();
    within(connection.close()).await.unwrap();
    assert_eq!(peer.drain(&peer.dead_letters_of(&q), 1).await, firsts(1..=1));
    assert_eq!(peer.drain(&q, 0).await, []);
}

/// C-07 (d), over a network that is cut.
#[tokio::test]
async fn an_acknowledgement_after_the_network_was_cut_is_an_error_and_its_message_comes_again() {
    let peer = Peer::corriere().await;
    let cable = Cable::to(peer.url()).await;
    let q = peer.queue("q");
    peer.send_numbered(&q, 5).await;
    let connection = connect(&cable).await;
    let session = within(connection.create_session(Individual)).await.unwrap();
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    let mut held = Vec::new();
    for _ in 0..5 {
        held.push(within(consumer.take()).await.unwrap().unwrap());
    }
    let m5 = held.pop().unwrap();
    for delivery in held {
        within(delivery.acknowledge()).await.unwrap();
    }
    cable.cut();
    // Nothing comes any more, which this one is told.
    assert!(within(consumer.receive()).await.is_err());
    let acknowledged = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move { within(m5.acknowledge()).await })
    });
    let error = acknowledged.join().unwrap().unwrap_err();
    assert!(matches!(&error, Error::Provider(error) if error.ends_connection()), "{error:?}");
    assert_eq!(peer.drain(&q, 1).await, [nth("m5", 2)]);
}

async fn connect_in_the_end(factory: &ConnectionFactory) -> Connection {
    loop {
        match within(factory.create_connection()).await {
            Ok(connection) => return connection,
            Err(Error::Provider(ProviderError::ClientIdInUse { holder, .. })) => assert!(!holder.is_empty()),
            Err(other) => panic!("{other}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// C-34: of two ways to give way the broker has this: the ghost holds the id until it is known to be gone, which is at
/// once where the network says so, and else within the keep-alive time.
#[tokio::test]
async fn the_ghost_of_a_client_gives_its_id_free_and_all_that_it_had() {
    for tells in [true, false] {
        let keep_alive =
            "wireFormat.maxInactivityDuration=2000&wireFormat.maxInactivityDurationInitalDelay=1";
        let peer = Peer::corriere_with(keep_alive).await;
        let cable = Cable::to(peer.url()).await;
        let q = peer.queue("q");
        peer.send_numbered(&q, 3).await;
        let client_id = peer.queue("client").name().to_owned();
        let factory = factory(&cable, &format!("{AT_ONCE}&jms.clientID={client_id}"));
        let ghost = within(factory.create_connection()).await.unwrap();
        ghost.start().unwrap();
        let session = within(ghost.create_session(Client)).await.unwrap();
        let consumer = within(session.create_consumer(&q)).await.unwrap();
        assert_eq!(see(&consumer, 1).await, firsts(1..=1));
        let refused = within(factory.create_connection()).await.unwrap_err();
        match refused {
            Error::Provider(ProviderError::ClientIdInUse { client_id: named, holder }) => {
                assert_eq!(named, client_id);
                assert!(!holder.is_empty());
            }
            other => panic!("{other}"),
        }
        assert_eq!(see(&consumer, 1).await, firsts(2..=2), "the first one keeps working");
        // What it has in hand is with the broker when a later command is confirmed.
        within(session.create_producer(None)).await.unwrap();
        if tells {
            cable.cut();
        } else {
            cable.deaden();
        }
        let direct =
            ConnectionFactory::from_url(&format!("{}?{AT_ONCE}&jms.clientID={client_id}", peer.url()));
        let again = connect_in_the_end(&direct.unwrap()).await;
        again.start().unwrap();
        let session = within(again.create_session(Client)).await.unwrap();
        let consumer = within(session.create_consumer(&q)).await.unwrap();
        assert_eq!(see(&consumer, 3).await, [nth("m1", 2), nth("m2", 2), first("m3")], "told: {tells}");
        within(session.acknowledge()).await.unwrap();
        within(again.close()).await.unwrap();
        assert_eq!(peer.drain(&q, 0).await, []);
    }
}

/// C-34, for a durable subscription.
#[tokio::test]
async fn the_ghost_of_a_durable_subscriber_gives_its_subscription_free_and_nothing_is_lost() {
    let peer = Peer::corriere().await;
    let cable = Cable::to(peer.url()).await;
    let news = peer.topic("news");
    let client_id = peer.queue("client").name().to_owned();
    let factory = factory(&cable, &format!("{AT_ONCE}&jms.clientID={client_id}"));
    let sender = peer.session(Auto).await;
    let mut seen = Vec::new();
    for round in 0..5 {
        let connection = connect_in_the_end(&factory).await;
        connection.start().unwrap();
        let session = within(connection.create_session(Client)).await.unwrap();
        let consumer = within(session.create_durable_consumer(&news, "daily")).await.unwrap();
        // Half of them while it is there, and half after it was cut off.
        for number in [4 * round + 1, 4 * round + 2] {
            send_text(&sender, &news, &format!("m{number}")).await;
        }
        seen.extend(see(&consumer, if round == 0 { 2 } else { 4 }).await);
        within(session.acknowledge()).await.unwrap();
        cable.cut();
        for number in [4 * round + 3, 4 * round + 4] {
            send_text(&sender, &news, &format!("m{number}")).await;
        }
    }
    assert_eq!(seen, firsts(1..=18));
}

fn body(size: usize) -> Vec<u8> {
    (0..size).map(|index| (index ^ (index >> 8) ^ (index >> 16)) as u8).collect()
}

/// C-55, half sent.
#[tokio::test]
async fn of_a_large_body_whose_sender_is_cut_off_half_way_nothing_is_there() {
    let peer = Peer::corriere().await;
    let cable = Cable::to(peer.url()).await;
    let q = peer.queue("q");
    for size in [1_000_000, 64 << 20] {
        let connection = connect(&cable).await;
        let session = within(connection.create_session(Auto)).await.unwrap();
        cable.cut_after_sending(size / 2);
        let sent = within(session.send(&q, &Message::bytes(body(size)), &SendOptions::default())).await;
        assert!(matches!(&sent, Err(Error::Provider(error)) if error.ends_connection()), "{sent:?}");
        let other = peer.session(Auto).await;
        send_text(&other, &q, "m1").await;
        assert_eq!(peer.drain(&q, 1).await, firsts(1..=1), "{size} bytes: neither half of it nor all");
    }
}

/// C-55, half received. It was in nobody's hands, so by decision 3 it does not count; the row has it flagged.
#[tokio::test]
async fn a_large_body_whose_consumer_is_cut_off_half_way_comes_again_whole() {
    let peer = Peer::corriere().await;
    let cable = Cable::to(peer.url()).await;
    let q = peer.queue("q");
    let body = body(10_000_000);
    let sender = peer.session(Auto).await;
    within(sender.send(&q, &Message::bytes(body.clone()), &SendOptions::default())).await.unwrap();
    let connection = connect(&cable).await;
    let session = within(connection.create_session(Auto)).await.unwrap();
    cable.cut_after_receiving(body.len() / 2);
    let consumer = within(session.create_consumer(&q)).await;
    if let Ok(consumer) = consumer {
        let received = within(consumer.receive()).await;
        assert!(received.is_err(), "half of it is no message");
    }
    let consumer = within(sender.create_consumer(&q)).await.unwrap();
    let received = next(&consumer).await;
    assert!(received.as_bytes().unwrap().as_bytes()[..] == body[..], "it arrived otherwise");
    assert_eq!((received.count(), received.headers().redelivered()), (1, false));
    within(consumer.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 0).await, []);
}

/// C-55, the limit of a frame. What has room in a frame to the broker and in none to its consumer, as that says more, is
/// among the dead letters, whole.
#[tokio::test]
async fn a_body_beyond_the_limit_of_a_frame_is_refused_by_name_and_other_sessions_go_on() {
    let (peer, wide) = Peer::narrow_corriere().await;
    let q = peer.queue("q");
    let connection = peer.connect(AT_ONCE).await;
    let session = within(connection.create_session(Auto)).await.unwrap();
    let neighbour = within(connection.create_session(Auto)).await.unwrap();
    let consumer = within(neighbour.create_consumer(&q)).await.unwrap();
    // By halves to the largest body that has room in a frame of 64 KiB.
    let (mut fits, mut too_large) = (0, 65_536 + 1);
    let mut buried = Vec::new();
    while fits + 1 < too_large {
        let size = (fits + too_large) / 2;
        let sent = within(session.send(&q, &Message::bytes(body(size)), &SendOptions::default())).await;
        send_text(&neighbour, &q, "m").await;
        let mut received = next(&consumer).await;
        match sent {
            Ok(_) => {
                if received.as_bytes().is_ok() {
                    assert!(received.as_bytes().unwrap().as_bytes()[..] == body(size)[..], "{size} bytes");
                    received = next(&consumer).await;
                } else {
                    buried.push(size);
                }
                fits = size;
            }
            Err(error) => {
                assert!(error.to_string().contains("65536"), "{error}");
                too_large = size;
            }
        }
        let others = received.as_text().unwrap();
        assert_eq!(others, Some("m"), "the other session of the connection is alive");
    }
    assert!(fits > 64_000, "{fits} bytes are the limit where 65536 are");
    assert!(connection.is_open());
    let dead = wide.session(Auto).await;
    let dead = within(dead.create_consumer(&peer.dead_letters_of(&q))).await.unwrap();
    for size in buried {
        let letter = next(&dead).await;
        assert!(letter.as_bytes().unwrap().as_bytes()[..] == body(size)[..], "{size} bytes");
    }
    within(connection.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 0).await, []);
}

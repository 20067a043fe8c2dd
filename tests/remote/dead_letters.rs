//! Where a message ends that failed too often or for good, what it says there, and what goes on without it.

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::provider::Cause;
use corriere_core::{Connection, DeliveryMode, Message, Priority, Release, SendOptions, Session};

use crate::peer::{AT_ONCE, Peer, Seen, again, first, firsts, next, nth, see, send_text, take, text, within};

over_each_peer! {
    what_failed_too_often_is_a_dead_letter_with_its_cause,
    what_is_condemned_is_a_dead_letter_at_once,
    a_dead_letter_is_the_message_that_it_was,
    without_redelivery_the_first_failure_is_the_last,
    what_is_recovered_too_often_is_a_dead_letter,
    what_is_not_persistent_leaves_no_dead_letter,
    without_blocking_what_failed_too_often_is_a_dead_letter,
    a_dead_letter_that_is_sent_again_starts_anew,
}

fn texts(letters: &[Message]) -> Vec<&str> {
    letters.iter().map(text).collect()
}

fn cause(letter: &Message) -> String {
    letter.property::<String>("dlqDeliveryFailureCause").unwrap().unwrap()
}

async fn what_failed_too_often_is_a_dead_letter_with_its_cause(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 2).await;
    let session = peer.session(Transacted).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    for count in 1..=3 {
        let delivery = next(&consumer).await;
        assert_eq!(Seen::of(&delivery), nth("m1", count));
        within(delivery.release(again(None))).await.unwrap();
    }
    assert_eq!(see(&consumer, 1).await, firsts(2..=2));
    within(session.commit()).await.unwrap();
    let letters = peer.dead_letters(&q, 1).await;
    assert_eq!(texts(&letters), ["m1"]);
    assert!(cause(&letters[0]).contains("it is raining"), "{}", cause(&letters[0]));
    // ActiveMQ counts the deliveries of the dead letter instead.
    let count = letters[0].property::<i32>("JMSXDeliveryCount").unwrap();
    assert_eq!(count, Some(if peer.is_ours() { 3 } else { 1 }));
}

async fn what_is_condemned_is_a_dead_letter_at_once(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 3).await;
    let session = peer.session(Client).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    let (one, two) = (take(&consumer).await, take(&consumer).await);
    within(two.release(Release::DeadLetter { cause: Cause::failure("no such order") })).await.unwrap();
    within(one.acknowledge()).await.unwrap();
    assert_eq!(see(&consumer, 1).await, firsts(3..=3));
    let letters = peer.dead_letters(&q, 1).await;
    assert_eq!(texts(&letters), ["m2"]);
    assert!(cause(&letters[0]).contains("no such order"), "{}", cause(&letters[0]));
}

async fn a_dead_letter_is_the_message_that_it_was(peer: &Peer) {
    let q = peer.queue("q");
    let sending = peer.session(Auto).await;
    let mut message = Message::text("m1");
    message.set_property("customer", 17_i64).unwrap();
    message.headers_mut().correlation_id = Some("order 4".into());
    message.headers_mut().message_type = Some("order".into());
    message.headers_mut().reply_to = Some(peer.queue("replies"));
    let options = SendOptions { priority: Some(Priority::new(7).unwrap()), ..SendOptions::default() };
    let sent = within(sending.send(&q, &message, &options)).await.unwrap();
    let session = peer.session(Client).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    for _ in 1..=3 {
        within(take(&consumer).await.release(again(None))).await.unwrap();
    }
    let letters = peer.dead_letters(&q, 1).await;
    let headers = letters[0].headers();
    assert_eq!(headers.message_id.as_ref(), Some(&sent));
    assert_eq!(headers.correlation_id.as_deref(), Some("order 4"));
    assert_eq!(headers.message_type.as_deref(), Some("order"));
    assert_eq!(headers.reply_to, Some(peer.queue("replies")));
    assert_eq!((headers.priority.level(), headers.delivery_mode), (7, DeliveryMode::Persistent));
    assert_eq!(letters[0].property::<i64>("customer").unwrap(), Some(17));
    if peer.is_ours() {
        let origin = letters[0].property::<String>("dlqOriginalDestination").unwrap();
        assert_eq!(origin, Some(q.to_string()));
    }
}

async fn without_redelivery_the_first_failure_is_the_last(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 3).await;
    let (_connection, session) = limited_to(peer, 0, Client).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    for number in 1..=2 {
        let delivery = take(&consumer).await;
        assert_eq!(Seen::of(&delivery), first(&format!("m{number}")));
        within(delivery.release(again(None))).await.unwrap();
    }
    assert_eq!(see(&consumer, 1).await, firsts(3..=3));
    within(session.acknowledge()).await.unwrap();
    assert_eq!(texts(&peer.dead_letters(&q, 2).await), ["m1", "m2"]);
}

async fn limited_to(
    peer: &Peer,
    maximum: u32,
    mode: corriere_core::AcknowledgeMode,
) -> (Connection, Session) {
    let options = format!(
        "jms.redeliveryPolicy.initialRedeliveryDelay=0&jms.redeliveryPolicy.redeliveryDelay=0\
         &jms.redeliveryPolicy.maximumRedeliveries={maximum}"
    );
    let connection = peer.connect(&options).await;
    let session = within(connection.create_session(mode)).await.unwrap();
    (connection, session)
}

async fn what_is_recovered_too_often_is_a_dead_letter(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 3).await;
    let (_connection, session) = limited_to(peer, 1, Client).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    assert_eq!(see(&consumer, 1).await, firsts(1..=1));
    within(session.recover()).await.unwrap();
    // The second one has a delivery left when the first has none.
    assert_eq!(see(&consumer, 2).await, [nth("m1", 2), first("m2")]);
    within(session.recover()).await.unwrap();
    assert_eq!(see(&consumer, 2).await, [nth("m2", 2), first("m3")]);
    within(session.acknowledge()).await.unwrap();
    within(session.close()).await.unwrap();
    let letters = peer.dead_letters(&q, 1).await;
    assert_eq!(texts(&letters), ["m1"]);
    assert!(!cause(&letters[0]).is_empty());
    assert_eq!(peer.drain(&q, 0).await, []);
}

async fn what_is_not_persistent_leaves_no_dead_letter(peer: &Peer) {
    let q = peer.queue("q");
    let sending = peer.session(Auto).await;
    let options = SendOptions { delivery_mode: Some(DeliveryMode::NonPersistent), ..SendOptions::default() };
    within(sending.send(&q, &Message::text("light"), &options)).await.unwrap();
    send_text(&sending, &q, "m1").await;
    let (_connection, session) = limited_to(peer, 0, Client).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    let mut failed = Vec::new();
    for _ in 0..2 {
        let delivery = take(&consumer).await;
        failed.push(text(&delivery).to_owned());
        within(delivery.release(again(None))).await.unwrap();
    }
    // ActiveMQ keeps those that are not persistent apart, and mixes them with the others.
    failed.sort();
    assert_eq!(failed, ["light", "m1"]);
    assert_eq!(texts(&peer.dead_letters(&q, 1).await), ["m1"]);
}

async fn without_blocking_what_failed_too_often_is_a_dead_letter(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 6).await;
    let connection = peer.connect(&format!("{AT_ONCE}&jms.nonBlockingRedelivery=true")).await;
    let session = within(connection.create_session(Client)).await.unwrap();
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    let mut poison = Vec::new();
    let mut good = Vec::new();
    while poison.len() < 9 || good.len() < 3 {
        let delivery = take(&consumer).await;
        if ["m1", "m3", "m5"].contains(&text(&delivery)) {
            poison.push((text(&delivery).to_owned(), delivery.count()));
            within(delivery.release(again(None))).await.unwrap();
        } else {
            good.push(text(&delivery).to_owned());
            within(delivery.acknowledge()).await.unwrap();
        }
    }
    poison.sort();
    let expected: Vec<(String, u32)> =
        ["m1", "m3", "m5"].iter().flat_map(|text| (1..=3).map(|count| ((*text).to_owned(), count))).collect();
    assert_eq!((poison, good.as_slice()), (expected, ["m2", "m4", "m6"].map(str::to_owned).as_slice()));
    assert_eq!(texts(&peer.dead_letters(&q, 3).await), ["m1", "m3", "m5"]);
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 0).await, []);
}

async fn a_dead_letter_that_is_sent_again_starts_anew(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 1).await;
    for _ in 0..2 {
        let (connection, session) = limited_to(peer, 1, Client).await;
        let consumer = within(session.create_consumer(&q)).await.unwrap();
        for count in 1..=2 {
            let delivery = take(&consumer).await;
            assert_eq!(Seen::of(&delivery), nth("m1", count));
            within(delivery.release(again(None))).await.unwrap();
        }
        within(connection.close()).await.unwrap();
        let letters = peer.dead_letters(&q, 1).await;
        let sending = peer.session(Auto).await;
        within(sending.send(&q, &letters[0], &SendOptions::default())).await.unwrap();
    }
    assert_eq!(peer.drain(&q, 1).await, firsts(1..=1));
}

//! A body that is asked for as what it is not.

use corriere_core::AcknowledgeMode::{Auto, Client, DupsOk, Transacted};
use corriere_core::message::{MapBody, StreamBody};
use corriere_core::provider::{Cause, CauseKind};
use corriere_core::{Body, Message, MessageError, Release, SendOptions, Value};

use crate::peer::{Peer, Seen, first, firsts, next, nth, see, within};

over_each_peer! {
    a_text_that_is_asked_for_as_bytes_is_still_there_as_text,
    in_auto_and_dups_ok_the_first_failed_conversion_leaves_the_same_message_next_and_unflagged,
    in_client_and_transacted_a_failed_conversion_is_a_delivery_that_only_the_application_undoes,
    no_body_is_none_of_any_type_and_absent_and_empty_stay_apart,
}

/// C-56: whatever the mode, a wrong question loses nothing, as the message is in the application's hands.
async fn a_text_that_is_asked_for_as_bytes_is_still_there_as_text(peer: &Peer) {
    for mode in [Auto, DupsOk, Client, Transacted] {
        let q = peer.queue(&format!("{mode:?}"));
        peer.send_numbered(&q, 2).await;
        let session = peer.session(mode).await;
        let consumer = within(session.create_consumer(&q)).await.unwrap();
        let received = next(&consumer).await;
        let refused = received.as_bytes().unwrap_err();
        assert!(
            matches!(refused, MessageError::Format { found: "text", expected: "bytes", .. }),
            "{refused}"
        );
        assert_eq!((received.as_text(), received.count()), (Ok(Some("m1")), 1), "{mode:?}");
        assert_eq!(see(&consumer, 1).await, firsts(2..=2), "{mode:?}: it does not come again by itself");
        within(session.close()).await.unwrap();
    }
}

/// C-56 as decision 2 has it: in AUTO and `DUPS_OK`.
async fn in_auto_and_dups_ok_the_first_failed_conversion_leaves_the_same_message_next_and_unflagged(
    peer: &Peer,
) {
    // That a conversion failed is no word of ActiveMQ's: there it counts as what it is there, a delivery.
    if !peer.is_ours() {
        return;
    }
    for mode in [Auto, DupsOk] {
        let q = peer.queue(&format!("{mode:?}"));
        peer.send_numbered(&q, 2).await;
        let session = peer.session(mode).await;
        let consumer = within(session.create_consumer(&q)).await.unwrap();
        let taken = within(consumer.take()).await.unwrap().unwrap();
        taken.as_bytes().unwrap_err();
        let cause = Cause { kind: CauseKind::Conversion, text: "no bytes".into(), listener: None };
        within(taken.release(Release::Redeliver { delay: None, cause })).await.unwrap();
        assert_eq!(see(&consumer, 2).await, firsts(1..=2), "{mode:?}");
        within(session.close()).await.unwrap();
        assert_eq!(peer.drain(&q, 0).await, [], "{mode:?}");
    }
}

/// C-56: in CLIENT and TRANSACTED.
async fn in_client_and_transacted_a_failed_conversion_is_a_delivery_that_only_the_application_undoes(
    peer: &Peer,
) {
    for mode in [Client, Transacted] {
        let q = peer.queue(&format!("{mode:?}"));
        peer.send_numbered(&q, 2).await;
        let session = peer.session(mode).await;
        let consumer = within(session.create_consumer(&q)).await.unwrap();
        let received = next(&consumer).await;
        received.as_bytes().unwrap_err();
        assert_eq!(Seen::of(&received), first("m1"));
        assert_eq!(see(&consumer, 1).await, firsts(2..=2), "{mode:?}: it does not loop");
        if mode == Transacted {
            within(session.rollback()).await.unwrap();
        } else {
            within(session.recover()).await.unwrap();
        }
        assert_eq!(see(&consumer, 2).await, [nth("m1", 2), nth("m2", 2)], "{mode:?}");
        within(session.close()).await.unwrap();
    }
}

/// Which accessors answer: text, bytes, map, stream, object.
fn answers(message: &Message) -> String {
    [
        message.as_text().is_ok(),
        message.as_bytes().is_ok(),
        message.as_map().is_ok(),
        message.as_stream().is_ok(),
        message.as_object().is_ok(),
    ]
    .map(|answers| if answers { 'x' } else { '.' })
    .iter()
    .collect()
}

/// C-56.
async fn no_body_is_none_of_any_type_and_absent_and_empty_stay_apart(peer: &Peer) {
    let (mut map, mut stream) = (MapBody::new(), StreamBody::new());
    map.set("null", Value::Null).unwrap();
    stream.push("item");
    let q = peer.queue("q");
    let session = peer.session(Auto).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    for (sent, expected) in [
        (Message::new(Body::Empty), "....."),
        (Message::new(Body::Text(None)), "x...."),
        (Message::text(""), "x...."),
        (Message::bytes(Vec::new()), ".x..."),
        (Message::map(MapBody::new()), "..x.."),
        (Message::map(map), "..x.."),
        (Message::stream(stream), "...x."),
    ] {
        within(session.send(&q, &sent, &SendOptions::default())).await.unwrap();
        let received = next(&consumer).await;
        assert_eq!(answers(&received), expected, "{:?}", sent.body());
        assert_eq!(received.body(), sent.body());
    }
}

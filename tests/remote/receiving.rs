//! Receives that wait, and that do not; windows; listeners; topics.

use std::sync::Arc;
use std::time::Duration;

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::client::{ConsumerOptions, ListenerFailure};
use corriere_core::{Message, SendOptions};
use tokio::sync::mpsc;

use crate::peer::{Peer, firsts, next, see, send_text, text, within};

over_each_peer! {
    a_receive_comes_back_without_a_message_when_its_time_is_over,
    a_message_that_comes_while_a_receive_waits_ends_it,
    messages_come_in_the_order_of_sending,
    a_window_goes_on_as_messages_are_settled_one_by_one_out_of_order,
    a_transaction_larger_than_the_window_does_not_wait_for_itself,
    two_consumers_share_a_queue,
    a_listener_is_called_for_each_message_and_again_when_it_failed,
    what_expired_in_the_buffer_is_passed_over_and_what_is_behind_it_comes,
    every_subscriber_of_a_topic_gets_what_is_sent_while_it_is_there,
    what_a_connection_sends_to_a_topic_itself_may_be_left_out,
}

async fn a_receive_comes_back_without_a_message_when_its_time_is_over(peer: &Peer) {
    let session = peer.session(Auto).await;
    for prefetch in [0, 1, 10] {
        let q = peer.queue(&format!("q{prefetch}"));
        let consumer = within(session.create_consumer_with_prefetch(&q, prefetch)).await.unwrap();
        assert!(within(consumer.receive_no_wait()).await.unwrap().is_none());
        assert!(within(consumer.receive_timeout(Duration::ZERO)).await.unwrap().is_none());
        assert!(within(consumer.receive_timeout(Duration::from_millis(20))).await.unwrap().is_none());
        send_text(&session, &q, "m1").await;
        assert_eq!(see(&consumer, 1).await, firsts(1..=1));
    }
}

async fn a_message_that_comes_while_a_receive_waits_ends_it(peer: &Peer) {
    let session = peer.session(Auto).await;
    for prefetch in [0, 10] {
        let q = peer.queue(&format!("q{prefetch}"));
        let consumer = within(session.create_consumer_with_prefetch(&q, prefetch)).await.unwrap();
        let (received, ()) = tokio::join!(next(&consumer), peer.send_numbered(&q, 1));
        assert_eq!(text(&received), "m1");
    }
}

async fn messages_come_in_the_order_of_sending(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 200).await;
    let session = peer.session(Auto).await;
    let consumer = within(session.create_consumer_with_prefetch(&q, 7)).await.unwrap();
    assert_eq!(see(&consumer, 200).await, firsts(1..=200));
    assert!(within(consumer.receive_no_wait()).await.unwrap().is_none());
}

async fn a_window_goes_on_as_messages_are_settled_one_by_one_out_of_order(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 40).await;
    let session = peer.session(Client).await;
    let consumer = within(session.create_consumer_with_prefetch(&q, 4)).await.unwrap();
    let mut received = Vec::new();
    for _ in 0..10 {
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(next(&consumer).await.into_single());
        }
        // The first is in hand for longest.
        for index in [2, 1, 3, 0] {
            within(held[index].acknowledge()).await.unwrap();
        }
        received.extend(held.iter().map(|delivery| text(delivery).to_owned()));
    }
    let expected: Vec<String> = (1..=40).map(|number| format!("m{number}")).collect();
    assert_eq!(received, expected);
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 0).await, []);
}

async fn a_transaction_larger_than_the_window_does_not_wait_for_itself(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 110).await;
    let session = peer.session(Transacted).await;
    for prefetch in [5, 1] {
        let consumer = within(session.create_consumer_with_prefetch(&q, prefetch)).await.unwrap();
        let begin = if prefetch == 5 { 1 } else { 51 };
        assert_eq!(see(&consumer, 50).await, firsts(begin..=begin + 49));
        within(session.commit()).await.unwrap();
        within(consumer.close()).await.unwrap();
    }
    assert_eq!(peer.drain(&q, 10).await, firsts(101..=110));
}

async fn two_consumers_share_a_queue(peer: &Peer) {
    let q = peer.queue("q");
    let (one, other) = (peer.session(Auto).await, peer.session(Auto).await);
    let one = within(one.create_consumer_with_prefetch(&q, 1)).await.unwrap();
    let other = within(other.create_consumer_with_prefetch(&q, 1)).await.unwrap();
    peer.send_numbered(&q, 20).await;
    let mut seen = Vec::new();
    for _ in 0..20 {
        tokio::select! {
            delivery = next(&one) => seen.push(text(&delivery).to_owned()),
            delivery = next(&other) => seen.push(text(&delivery).to_owned()),
        }
    }
    seen.sort_by_key(|text| text[1..].parse::<u32>().unwrap());
    assert_eq!(seen, (1..=20).map(|number| format!("m{number}")).collect::<Vec<_>>());
}

async fn a_listener_is_called_for_each_message_and_again_when_it_failed(peer: &Peer) {
    let q = peer.queue("q");
    let session = peer.session(Auto).await;
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    let (sender, mut calls) = mpsc::unbounded_channel();
    let sender = Arc::new(sender);
    consumer
        .set_message_listener(move |delivery| {
            let sender = Arc::clone(&sender);
            async move {
                let call = (text(&delivery).to_owned(), delivery.count());
                let fails = call == ("m2".to_owned(), 1);
                sender.send(call).unwrap();
                if fails { Err(ListenerFailure::from("no")) } else { Ok(()) }
            }
        })
        .unwrap();
    peer.send_numbered(&q, 3).await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(within(calls.recv()).await.unwrap());
    }
    let call = |text: &str, count| (text.to_owned(), count);
    assert_eq!(seen, [call("m1", 1), call("m2", 1), call("m2", 2), call("m3", 1)]);
    within(session.close()).await.unwrap();
    assert_eq!(peer.drain(&q, 0).await, []);
}

async fn what_expired_in_the_buffer_is_passed_over_and_what_is_behind_it_comes(peer: &Peer) {
    let q = peer.queue("q");
    let session = peer.session(Auto).await;
    let consumer = within(session.create_consumer_with_prefetch(&q, 2)).await.unwrap();
    let short = SendOptions { time_to_live: Some(Duration::from_millis(300)), ..SendOptions::default() };
    for _ in 0..4 {
        within(session.send(&q, &Message::text("short"), &short)).await.unwrap();
    }
    let last = session.connection().clock().now().saturating_add(Duration::from_millis(300));
    session.connection().clock().sleep_until(last).await;
    send_text(&session, &q, "m1").await;
    assert_eq!(see(&consumer, 1).await, firsts(1..=1));
}

async fn every_subscriber_of_a_topic_gets_what_is_sent_while_it_is_there(peer: &Peer) {
    let topic = peer.topic("t");
    peer.send_numbered(&topic, 1).await;
    let session = peer.session(Auto).await;
    let one = within(session.create_consumer(&topic)).await.unwrap();
    let other = within(session.create_consumer_with_prefetch(&topic, 2)).await.unwrap();
    peer.send_numbered(&topic, 20).await;
    assert_eq!(see(&one, 20).await, firsts(1..=20));
    assert_eq!(see(&other, 20).await, firsts(1..=20));
}

async fn what_a_connection_sends_to_a_topic_itself_may_be_left_out(peer: &Peer) {
    let topic = peer.topic("t");
    let session = peer.session(Auto).await;
    let options = ConsumerOptions { no_local: true, ..ConsumerOptions::default() };
    let consumer = within(session.create_consumer_with(&topic, &options)).await.unwrap();
    send_text(&session, &topic, "mine").await;
    peer.send_numbered(&topic, 1).await;
    assert_eq!(see(&consumer, 1).await, firsts(1..=1));
}

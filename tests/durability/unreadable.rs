//! A stored message that cannot be read back while the broker runs (C-06, C-45 d).

use corriere_core::AcknowledgeMode::{self, Auto, Client, Transacted};

use crate::support::{End, Home, Running, firsts, queue, see, send_text, text, within};

/// A broker with `m1`, a message that will not be read, and `m2` to `m<last>` behind it; none is in memory.
async fn with_unreadable(home: &mut Home, last: usize) -> Running {
    let q = queue("q");
    let broker = home.start();
    broker.send(&q, 1..=1).await;
    send_text(&broker.session(Auto).await, &q, "to be spoilt").await;
    broker.send(&q, 2..=last).await;
    let broker = home.restart(broker, End::Stop);
    home.damage("to be spoilt");
    broker
}

/// C-06, C-45 (d).
#[tokio::test]
async fn it_is_set_aside_and_what_is_behind_it_is_delivered_to_the_same_consumer() {
    for mut home in [Home::on_disk(), Home::recorded()] {
        let q = queue("q");
        let broker = with_unreadable(&mut home, 3).await;
        let session = broker.session(Auto).await;
        let consumer = session.create_consumer(&q).await.unwrap();
        assert_eq!(see(&consumer, 3).await, firsts(1..=3));
        send_text(&session, &q, "m4").await;
        assert_eq!(see(&consumer, 1).await, firsts(4..=4), "its connection lives");
        broker.until(&q, |counts| counts.in_flight == 0).await;
        // It is kept: what can be read of it is for a repair to say.
        let counts = broker.counts(&q);
        assert_eq!((counts.acknowledged, counts.pending), (4, 1));
        let broker = home.restart(broker, End::Stop);
        assert_eq!(broker.drain(&q).await, []);
        broker.send(&q, 5..=5).await;
        assert_eq!(broker.drain(&q).await, firsts(5..=5));
        broker.stop();
    }
}

/// C-06: whoever consumes, and however.
#[tokio::test]
async fn it_is_in_nobodys_way() {
    for (mode, prefetch) in [(Auto, 0), (Auto, 1), (Client, 0), (Client, 1), (Transacted, 0), (Transacted, 2)]
    {
        let mut home = Home::recorded();
        let broker = with_unreadable(&mut home, 6).await;
        let what = format!("{mode:?} with a prefetch of {prefetch}");
        assert_eq!(take(&broker, mode, prefetch, 6).await, ["m1", "m2", "m3", "m4", "m5", "m6"], "{what}");
        broker.stop();
    }
}

async fn take(broker: &Running, mode: AcknowledgeMode, prefetch: u32, count: usize) -> Vec<String> {
    let session = broker.session(mode).await;
    let consumer = session.create_consumer_with_prefetch(&queue("q"), prefetch).await.unwrap();
    let mut texts = Vec::new();
    for _ in 0..count {
        let delivery = within(consumer.receive()).await.unwrap().unwrap();
        texts.push(text(&delivery).to_owned());
        within(delivery.acknowledge()).await.unwrap();
    }
    let nothing = within(consumer.receive_no_wait()).await.unwrap();
    assert!(nothing.is_none(), "{nothing:?}");
    if mode == Transacted {
        within(session.commit()).await.unwrap();
    }
    texts
}

/// C-06: the same again after a restart in which nobody had met it.
#[tokio::test]
async fn a_restart_before_anybody_met_it_changes_nothing() {
    let mut home = Home::recorded();
    let broker = with_unreadable(&mut home, 3).await;
    let broker = home.restart(broker, End::Stop);
    assert_eq!(broker.drain(&queue("q")).await, firsts(1..=3));
    broker.stop();
}

/// C-06: a look at the queue goes past it.
#[tokio::test]
async fn browsing_shows_the_others() {
    let mut home = Home::recorded();
    let broker = with_unreadable(&mut home, 3).await;
    let mut browse = broker.broker.browse(&queue("q"));
    let mut texts = Vec::new();
    let mut unreadable = 0;
    while let Some(message) = within(browse.next()).await {
        match message {
            Ok(message) => texts.push(text(&message).to_owned()),
            Err(_) => unreadable += 1,
        }
    }
    assert_eq!((texts, unreadable), (vec!["m1".to_owned(), "m2".to_owned(), "m3".to_owned()], 1));
    assert_eq!(broker.drain(&queue("q")).await, firsts(1..=3), "a look counts nothing");
    broker.stop();
}

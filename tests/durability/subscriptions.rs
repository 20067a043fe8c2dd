//! Durable subscriptions over every end of the process: what they keep, and what is left of them.

use std::sync::Arc;
use std::time::Duration;

use corriere_broker::DurableSubscription;
use corriere_broker::journal::inspect::{dump, repair, verify};
use corriere_core::AcknowledgeMode::Auto;
use corriere_core::Message;
use corriere_core::id::{ConnectionId, TransactionId, Xid};
use corriere_core::provider::{
    Command, Confirmation, ConnectOptions, Provider as _, ProviderError, SendMessage,
};

use crate::subscriber::{Client, Inbox, PRODUCER, leave, prices};
use crate::support::{End, Home, Running, queue, send_text, within};

fn described(broker: &Running, name: &str) -> DurableSubscription {
    let all = broker.broker.durable_subscriptions();
    all.into_iter().find(|found| &*found.name == name).unwrap_or_else(|| panic!("{name} is not there"))
}

fn texts(numbers: std::ops::RangeInclusive<usize>) -> Vec<String> {
    numbers.map(|number| format!("m{number}")).collect()
}

#[tokio::test]
async fn what_was_confirmed_is_there_after_every_end_with_its_order_and_its_counts() {
    for end in [End::Stop, End::Kill, End::PowerCut(7)] {
        let mut home = Home::recorded();
        let broker = home.start();
        leave(&broker, "c", &["a", "b"]).await;
        let sender = Client::connect(&broker, None).await;
        for text in texts(1..=4) {
            sender.publish(text).await;
        }
        let client = Client::connect(&broker, Some("c")).await;
        let a = client.subscribe("a").await;
        assert_eq!(client.take(a, 1).await, texts(1..=1), "{end:?}");
        let (number, ..) = client.next().await;
        client.done(Command::HandedOver { subscription: a, number, mark: None }).await;

        drop(sender);
        let broker = home.restart(broker, end);
        let (a, b) = (described(&broker, "a"), described(&broker, "b"));
        assert!(!a.is_active && !b.is_active, "{end:?}");
        assert_eq!(b.counts.recovered, 4, "{end:?}");
        // A power cut may take an acknowledgement that was only written.
        let is_settled = a.counts.recovered == 3;
        assert!(is_settled || matches!(end, End::PowerCut(_)), "{end:?}: {a:?}");
        let client = Client::connect(&broker, Some("c")).await;
        let b = client.subscribe("b").await;
        assert_eq!(client.take(b, 4).await, texts(1..=4), "{end:?}");
        client.subscribe("a").await;
        if is_settled {
            let (_, text, count) = client.next().await;
            // What is in hand is noted without a sync.
            let is_noted = !matches!(end, End::PowerCut(_));
            assert_eq!((&*text, count), ("m2", if is_noted { 2 } else { 1 }), "{end:?}");
            assert_eq!(client.next().await.1, "m3");
        }
        broker.stop();
    }
}

#[tokio::test]
async fn what_is_not_persistent_waits_for_an_inactive_one_until_the_process_ends() {
    let mut home = Home::recorded();
    let broker = home.start();
    leave(&broker, "c", &["d"]).await;
    let sender = Client::connect(&broker, None).await;
    let mut message = Message::clone(&sender.message("fleeting".to_owned()));
    message.headers_mut().delivery_mode = corriere_core::DeliveryMode::NonPersistent;
    let message = Arc::new(message);
    let send = SendMessage { producer: PRODUCER, message, transaction: None, deadline: None };
    sender.done(Command::Send(send)).await;
    sender.publish("lasting").await;
    assert_eq!(described(&broker, "d").counts.pending, 2);
    let broker = home.restart(broker, End::Kill);
    let client = Client::connect(&broker, Some("c")).await;
    let d = client.subscribe("d").await;
    assert_eq!(client.take(d, 1).await, ["lasting"]);
    assert_eq!(described(&broker, "d").counts.pending, 0);
    broker.stop();
}

/// C-33 (c).
#[tokio::test]
async fn an_unsubscribed_one_stays_gone_and_the_journal_is_freed() {
    for end in [End::Stop, End::Kill, End::PowerCut(3)] {
        let mut home = Home::recorded();
        home.options.max_file_length = 16 * 1024;
        home.options.cleanup_interval = Duration::from_millis(20);
        let broker = home.start();
        leave(&broker, "c", &["goes", "stays"]).await;
        let sender = Client::connect(&broker, None).await;
        for _ in 0..100 {
            sender.publish("x".repeat(1_000)).await;
        }
        // One of the two has settled all, and still every segment is needed.
        let client = Client::connect(&broker, Some("c")).await;
        let stays = client.subscribe("stays").await;
        client.take(stays, 100).await;
        assert!(home.segments().len() > 6, "{:?}", home.segments());
        assert_eq!(client.unsubscribe("goes").await, Ok(Confirmation::Done));
        drop((client, sender));
        let broker = home.restart(broker, end);
        let names: Vec<_> = broker.broker.durable_subscriptions().iter().map(|it| it.name.clone()).collect();
        assert_eq!(names, ["stays".into()], "{end:?}");
        // What follows has checkpoints written until it is freed.
        let session = broker.session(Auto).await;
        within(async {
            while home.segments().len() > 3 {
                send_text(&session, &queue("other"), "on").await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        broker.stop();
    }
}

/// C-33 (e), and C-34: a client id is free as soon as its connection is gone.
#[tokio::test]
async fn a_subscriber_that_reconnects_after_every_second_message_gets_all_in_order_once() {
    let home = Home::recorded();
    let broker = home.start();
    for run in 0..75 {
        let name = format!("d{run}");
        leave(&broker, "c", &[&name]).await;
        let sender = Client::connect(&broker, None).await;
        let sending = async {
            for text in texts(1..=30) {
                sender.publish(text).await;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let receiving = async {
            let mut received = Vec::new();
            while received.len() < 30 {
                let client = Client::connect(&broker, Some("c")).await;
                let subscription = client.subscribe(&name).await;
                received.extend(client.take(subscription, 2).await);
                // As its process would: it closes in order, or is dropped.
                if received.len() % 4 == 0 {
                    client.close().await;
                }
            }
            received
        };
        let ((), received) = tokio::join!(sending, receiving);
        assert_eq!(received, texts(1..=30), "run {run}");
        let client = Client::connect(&broker, Some("c")).await;
        assert_eq!(client.unsubscribe(&name).await, Ok(Confirmation::Done));
    }
    assert_eq!(broker.broker.memory_used(), 0);
    broker.stop();
}

/// C-34.
#[tokio::test]
async fn a_second_connection_of_a_client_is_refused_and_the_first_one_goes_on() {
    let home = Home::recorded();
    let broker = home.start();
    let client = Client::connect(&broker, Some("c")).await;
    let d = client.subscribe("d").await;
    let options = ConnectOptions {
        connection: ConnectionId::unique(),
        client_id: Some("c".into()),
        user: None,
        password: None,
    };
    let refused = broker.broker.connect(options, Arc::new(Inbox::default())).await;
    assert!(
        matches!(&refused, Err(ProviderError::ClientIdInUse { client_id, .. }) if client_id == "c"),
        "{refused:?}"
    );
    Client::connect(&broker, None).await.publish("m1").await;
    assert_eq!(client.take(d, 1).await, ["m1"]);
    broker.stop();
}

#[tokio::test]
async fn a_prepared_transaction_sends_to_those_that_are_left_when_it_is_committed_after_a_restart() {
    let mut home = Home::recorded();
    let broker = home.start();
    leave(&broker, "c", &["goes", "stays"]).await;
    let sender = Client::connect(&broker, None).await;
    sender.publish("before").await;
    let client = Client::connect(&broker, Some("c")).await;
    let stays = client.subscribe("stays").await;
    let (number, ..) = client.next().await;
    let xid = Xid { format: 1, global: vec![1].into(), branch: vec![2].into() };
    let transaction = TransactionId::Distributed(xid);
    client.done(Command::Begin { transaction: transaction.clone() }).await;
    client.acknowledge_in(stays, number, Some(transaction.clone())).await;
    client.publish_in("within", Some(transaction.clone())).await;
    client.done(Command::End { transaction: transaction.clone() }).await;
    let vote = client.ask(Command::Prepare { transaction: transaction.clone() }).await;
    assert_eq!(vote, Ok(Confirmation::Prepared { must_commit: true }));
    drop((client, sender));

    let broker = home.restart(broker, End::PowerCut(1));
    let client = Client::connect(&broker, Some("c")).await;
    let refused = client.unsubscribe("stays").await;
    assert!(matches!(refused, Err(ProviderError::SubscriptionInUse { .. })), "{refused:?}");
    assert_eq!(client.unsubscribe("goes").await, Ok(Confirmation::Done));
    client.close().await;
    let broker = home.restart(broker, End::Kill);
    let client = Client::connect(&broker, Some("c")).await;
    client.done(Command::Commit { transaction, one_phase: false }).await;
    let stays = client.subscribe("stays").await;
    assert_eq!(client.take(stays, 1).await, ["within"]);
    assert_eq!(broker.broker.durable_subscriptions().len(), 1);
    drop(client);
    let broker = home.restart(broker, End::Stop);
    assert_eq!(described(&broker, "stays").counts.recovered, 0);
    broker.stop();
}

#[tokio::test]
async fn a_large_body_is_one_file_that_goes_with_the_last_who_needs_it() {
    let mut home = Home::recorded();
    home.options.cleanup_interval = Duration::from_millis(20);
    let broker = home.start();
    leave(&broker, "c", &["a", "b", "gone"]).await;
    let sender = Client::connect(&broker, None).await;
    let body = "x".repeat(200_000);
    sender.publish(&body).await;
    assert_eq!(home.large_files().len(), 1);
    drop(sender);
    let broker = home.restart(broker, End::PowerCut(5));
    let client = Client::connect(&broker, Some("c")).await;
    let a = client.subscribe("a").await;
    assert!(client.take(a, 1).await == [body.as_str()], "it is whole");
    assert_eq!(client.unsubscribe("gone").await, Ok(Confirmation::Done));
    drop(client);
    let broker = home.restart(broker, End::Stop);
    assert_eq!(home.large_files().len(), 1, "it is needed by one more");
    let client = Client::connect(&broker, Some("c")).await;
    let b = client.subscribe("b").await;
    assert!(client.take(b, 1).await == [body.as_str()], "it is whole");
    drop(client);
    let broker = home.restart(broker, End::Stop);
    broker.stop();
    assert_eq!(home.large_files().len(), 0);
}

#[tokio::test]
async fn a_producer_that_sends_again_after_a_crash_is_recognised() {
    let mut home = Home::recorded();
    let broker = home.start();
    leave(&broker, "c", &["d"]).await;
    let sender = Client::connect(&broker, None).await;
    let message = sender.message("m1".to_owned());
    let send = || {
        let message = Arc::clone(&message);
        Command::Send(SendMessage { producer: PRODUCER, message, transaction: None, deadline: None })
    };
    sender.done(send()).await;
    drop(sender);
    let broker = home.restart(broker, End::Kill);
    Client::connect(&broker, None).await.done(send()).await;
    assert_eq!(described(&broker, "d").counts.pending, 1);
    assert_eq!(broker.counts(&prices()).duplicates, 1);
    broker.stop();
}

/// C-57: what is not consumed is not held in memory, over a start either.
#[tokio::test]
async fn the_bodies_of_inactive_ones_are_not_in_memory() {
    let mut home = Home::recorded();
    home.settings.memory_limit = 100_000;
    let broker = home.start();
    let names: Vec<String> = (0..100).map(|number| format!("d{number}")).collect();
    leave(&broker, "c", &names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let sender = Client::connect(&broker, None).await;
    for number in 1..=50 {
        sender.publish(format!("m{number} {}", "x".repeat(10_000))).await;
        assert!(broker.broker.memory_used() <= 100_000, "{} bytes", broker.broker.memory_used());
    }
    drop(sender);
    let broker = home.restart(broker, End::Kill);
    assert_eq!((broker.counts(&prices()).pending, broker.broker.memory_used()), (5_000, 0));
    let client = Client::connect(&broker, Some("c")).await;
    let last = client.subscribe("d99").await;
    let received = client.take(last, 50).await;
    let numbers: Vec<_> = received.iter().map(|text| text.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(numbers, texts(1..=50));
    broker.stop();
}

#[tokio::test]
async fn the_tool_shows_whose_a_message_is_and_repairs_what_they_share() {
    let mut home = Home::recorded();
    let broker = home.start();
    leave(&broker, "c", &["a", "b"]).await;
    let sender = Client::connect(&broker, None).await;
    sender.publish("m1").await;
    sender.publish("y".repeat(200_000)).await;
    drop(sender);
    home.end(broker, End::Kill);
    let files = home.files();
    let directory = home.options.directory.clone();
    let verified = verify(&files, &directory).unwrap();
    assert_eq!((verified.messages, &*verified.findings), (4, &[][..]));
    let mut lines = Vec::new();
    dump(&files, &directory, &mut lines).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    assert_eq!(lines.lines().count(), 4);
    let of_b = lines.lines().filter(|line| line.contains(r#""subscription":"b""#)).count();
    assert_eq!((of_b, lines.contains(r#""client_id":"c""#)), (2, true), "{lines}");

    for is_checkpoint_lost in [false, true] {
        if is_checkpoint_lost {
            files.remove(&directory.join("kr-store/state")).unwrap();
        }
        let into = directory.with_file_name(format!("repaired-{is_checkpoint_lost}"));
        let repaired = repair(&files, &directory, &into).unwrap();
        assert_eq!((repaired.messages, &*repaired.lost), (4, &[][..]));
        let before = std::mem::replace(&mut home.options.directory, into);
        let broker = home.start();
        let client = Client::connect(&broker, Some("c")).await;
        for name in ["b", "a"] {
            let subscription = client.subscribe(name).await;
            let received = client.take(subscription, 2).await;
            assert_eq!((&*received[0], received[1].len()), ("m1", 200_000), "{name}");
        }
        drop(client);
        broker.stop();
        home.options.directory = before;
    }
}

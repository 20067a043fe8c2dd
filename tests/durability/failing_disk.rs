//! Writes and syncs that fail while the broker runs (C-46, decision 16).

use std::io::ErrorKind;

use corriere_broker::files::{Fault, Operation};
use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::{Error, Message, SendOptions};

use crate::support::{End, Home, Running, queue, send_text, within};

const SENDS: usize = 40;
const FAULTS: [Operation; 2] = [Operation::Write, Operation::SyncData];

fn break_at(home: &Home, operation: Operation, nth: u64) {
    home.memory().fail(Fault { operation, nth, error: ErrorKind::Other, lasting: false });
}

/// Sends `m1`, `m2` and so on until one is refused, for so many. How many were confirmed, and why no more.
async fn send_until_refused(broker: &Running) -> (usize, Option<Error>) {
    let session = broker.session(Auto).await;
    for number in 1..=SENDS {
        let message = Message::text(format!("m{number}"));
        if let Err(error) = within(session.send(&queue("q"), &message, &SendOptions::default())).await {
            within(session.close()).await.unwrap();
            return (number - 1, Some(error));
        }
    }
    (SENDS, None)
}

/// C-46, the write error; the third sync among others.
#[tokio::test]
async fn the_sender_is_told_nothing_hangs_and_a_restart_has_all_that_was_confirmed() {
    for operation in FAULTS {
        let mut refused = 0;
        for nth in 1..=8 {
            let mut home = Home::recorded();
            let broker = home.start();
            break_at(&home, operation, nth);
            let (confirmed, error) = send_until_refused(&broker).await;
            let what = format!("{operation:?} number {nth}: {error:?}");
            // What is done in the background, ahead of its need, may fail without harm to anybody.
            if error.is_some() {
                refused += 1;
                // Told to whoever runs the broker, too.
                let failure = within(broker.broker.failed()).await;
                assert!(!failure.to_string().is_empty());
                within(refuses_everything(&broker)).await;
            }
            let end = if nth % 2 == 0 { End::Kill } else { End::PowerCut(nth) };
            let broker = home.restart(broker, end);
            let seen = broker.drain(&queue("q")).await;
            // The one that was refused may be there, whole; nobody knows what a sync that failed has left.
            assert!(
                (confirmed..=confirmed + 1).contains(&seen.len()),
                "{what}: {confirmed}, then {}",
                seen.len()
            );
            let expected: Vec<_> = (1..=seen.len()).map(|number| format!("m{number}")).collect();
            assert_eq!(seen.into_iter().map(|seen| seen.text).collect::<Vec<_>>(), expected, "{what}");
            broker.send(&queue("q"), 1..=3).await;
            broker.stop();
        }
        assert!(refused > 0, "{operation:?}: no send met it");
    }
}

/// A broker whose store failed confirms nothing more, and says so at once.
async fn refuses_everything(broker: &Running) {
    let url = format!("vm://{}", broker.broker.name());
    let Ok(connection) = corriere_core::ConnectionFactory::from_url(&url).unwrap().create_connection().await
    else {
        return;
    };
    let Ok(session) = connection.create_session(Auto).await else { return };
    session.send(&queue("q"), &Message::text("more"), &SendOptions::default()).await.unwrap_err();
}

#[tokio::test]
async fn a_transaction_that_meets_it_is_whole_or_nothing() {
    for operation in FAULTS {
        for nth in 1..=6 {
            let mut home = Home::recorded();
            let broker = home.start();
            broker.send(&queue("in"), 1..=1).await;
            let session = broker.session(Transacted).await;
            let consumer = session.create_consumer(&queue("in")).await.unwrap();
            break_at(&home, operation, nth);
            let (out, unspecial) = (queue("out"), SendOptions::default());
            let mut committed = 0;
            loop {
                // The first takes what is there; all send three.
                if committed == 0 && within(consumer.receive()).await.is_err() {
                    break;
                }
                let mut sent = Ok(());
                for _ in 0..3 {
                    let message = Message::text("m");
                    let send = within(session.send(&out, &message, &unspecial)).await;
                    sent = sent.and(send.map(drop));
                }
                if sent.and(within(session.commit()).await).is_err() {
                    break;
                }
                committed += 1;
                if committed == SENDS {
                    break;
                }
            }
            let broker = home.restart(broker, End::Kill);
            let (left, sent) =
                (broker.drain(&queue("in")).await.len(), broker.drain(&queue("out")).await.len());
            let what = format!("{operation:?} number {nth}: {committed} committed, {left} left, {sent} sent");
            assert!(sent == committed * 3 || sent == (committed + 1) * 3, "{what}");
            assert_eq!(left, usize::from(sent == 0), "{what}");
            broker.stop();
        }
    }
}

#[tokio::test]
async fn an_acknowledgement_that_could_not_be_written_is_refused_and_its_message_comes_again() {
    let mut home = Home::recorded();
    let broker = home.start();
    broker.send(&queue("q"), 1..=1).await;
    let session = broker.session(Client).await;
    let consumer = session.create_consumer(&queue("q")).await.unwrap();
    let delivery = crate::support::next(&consumer).await;
    home.memory().fail(Fault { operation: Operation::Write, nth: 1, error: ErrorKind::Other, lasting: true });
    within(delivery.acknowledge()).await.unwrap_err();
    let broker = home.restart(broker, End::Kill);
    assert_eq!(broker.drain(&queue("q")).await.len(), 1);
    broker.stop();
}

#[tokio::test]
async fn a_close_while_the_disk_fails_ends() {
    let home = Home::recorded();
    let broker = home.start();
    let session = broker.session(Transacted).await;
    send_text(&session, &queue("q"), "m1").await;
    for operation in [Operation::Write, Operation::SyncData, Operation::Create, Operation::Rename] {
        home.memory().fail(Fault { operation, nth: 1, error: ErrorKind::Other, lasting: true });
    }
    within(session.close()).await.ok();
    within(session.connection().close()).await.ok();
    let stopping = tokio::task::spawn_blocking(move || broker.broker.stop());
    within(stopping).await.unwrap();
}

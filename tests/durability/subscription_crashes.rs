//! Durable subscriptions and a disk that fails at any of its operations.

use std::time::Duration;

use corriere_core::TransactionId;
use corriere_core::provider::{Ack, AckKind, Command, ProviderError};

use crate::subscriber::Client;
use crate::support::{End, Home, Running};

/// What a client did up to a crash, and what it was told.
#[derive(Debug, Default)]
struct Told {
    /// Subscriptions: whether each was asked to be made or to be removed last, and whether that was confirmed.
    subscriptions: Vec<(&'static str, bool, bool)>,
    /// What was sent while `a` was there for certain, and whether that was confirmed.
    sent: Vec<(String, bool)>,
    /// What `a` may have settled.
    settled: Vec<String>,
}

impl Told {
    fn note(&mut self, name: &'static str, is_made: bool, is_confirmed: bool) {
        self.subscriptions.retain(|(other, ..)| *other != name);
        self.subscriptions.push((name, is_made, is_confirmed));
    }
}

/// Makes, uses and removes durable subscriptions until the disk fails.
async fn live(broker: &Running, told: &mut Told) -> Result<(), ProviderError> {
    let client = Client::try_connect(broker, Some("c")).await?;
    told.note("a", true, false);
    let a = client.try_subscribe("a").await?;
    told.note("a", true, true);
    told.note("b", true, false);
    let b = client.try_subscribe("b").await?;
    told.note("b", true, true);
    let sender = Client::try_connect(broker, None).await?;
    let large = format!("large {}", "z".repeat(100_000));
    for text in ["m1", "m2", &large] {
        told.sent.push((text.to_owned(), false));
        sender.try_publish(text, None).await?;
        told.sent.last_mut().unwrap().1 = true;
    }
    let transaction = TransactionId::Local(1);
    sender.ask(Command::Begin { transaction: transaction.clone() }).await?;
    told.sent.push(("m3".to_owned(), false));
    sender.try_publish("m3", Some(transaction.clone())).await?;
    sender.ask(Command::Commit { transaction, one_phase: true }).await?;
    told.sent.last_mut().unwrap().1 = true;
    told.settled.push("m1".to_owned());
    let (subscription, first, last, transaction) = (a, 1, 1, None);
    let kind = AckKind::Standard;
    client.ask(Command::Acknowledge(Ack { subscription, first, last, kind, transaction })).await?;
    client.ask(Command::CloseSubscription { subscription: b, last_handed_over: 0 }).await?;
    told.note("b", false, false);
    client.unsubscribe("b").await?;
    told.note("b", false, true);
    told.sent.push(("m4".to_owned(), false));
    sender.try_publish("m4", None).await?;
    told.sent.last_mut().unwrap().1 = true;
    told.note("b", true, false);
    client.try_subscribe("b").await?;
    told.note("b", true, true);
    Ok(())
}

/// The disk fails at every operation on the way, and the machine or its process with it.
#[tokio::test]
async fn a_crash_at_any_write_or_sync_leaves_each_as_it_was_confirmed() {
    for step in 1..=2_000 {
        let mut home = Home::recorded();
        home.options.cleanup_interval = Duration::from_millis(2);
        let broker = home.start();
        let files = home.memory().clone();
        files.crash_at(files.operations() + step, step);
        let mut told = Told::default();
        let lived = live(&broker, &mut told).await;
        let end = if step % 2 == 0 { End::Kill } else { End::PowerCut(step) };
        let broker = home.restart(broker, end);
        let found = broker.broker.durable_subscriptions();
        for (name, is_made, is_confirmed) in &told.subscriptions {
            let is_there = found.iter().any(|found| &*found.name == *name);
            assert!(!is_confirmed || is_there == *is_made, "step {step}: {name} in {found:?}\n{told:?}");
        }
        if let Some(a) = found.iter().find(|found| &*found.name == "a") {
            let client = Client::connect(&broker, Some("c")).await;
            client.subscribe("a").await;
            let mut received = Vec::new();
            for _ in 0..a.counts.pending {
                received.push(client.next().await.1);
            }
            let mut possible = told.sent.iter().map(|(text, _)| text);
            assert!(received.iter().all(|text| possible.any(|sent| sent == text)), "step {step}: order");
            for (text, is_confirmed) in &told.sent {
                let is_there = received.contains(text);
                let may_be_gone = !is_confirmed || told.settled.contains(text);
                assert!(is_there || may_be_gone, "step {step}: a confirmed message is gone");
            }
        }
        assert!(home.large_files().len() <= 1, "step {step}: {:?}", home.large_files());
        broker.stop();
        if lived.is_ok() {
            assert!(step > 10, "the crash came too late");
            return;
        }
    }
    panic!("it never came to its end");
}

//! An acknowledgement that the broker refuses, at `misaddressing://NAME` for the embedded broker `NAME`: there the first
//! acknowledgement of each transaction names a subscription that is not there.

use std::collections::BTreeSet;
use std::sync::Mutex;

use corriere_core::AcknowledgeMode::Transacted;
use corriere_core::provider::{Command, ProviderConnection, ProviderScheme, Receipt};
use corriere_core::{ConnectionFactory, Error, SubscriptionId};
use corriere_tests::wrapped::{Between, wrapped};

use crate::support::{TestBroker, first, firsts, nth, queue, see, send_text, within};

/// C-13, for what is received.
#[tokio::test]
async fn one_acknowledgement_that_is_refused_makes_the_commit_a_rollback() {
    let broker = TestBroker::start();
    let (q, other, out) = (queue("q"), queue("other"), queue("out"));
    broker.send_numbered(&q, 2).await;
    broker.send_numbered(&other, 2).await;
    let factory = ConnectionFactory::from_url(&format!("misaddressing://{}", broker.broker.name())).unwrap();
    let connection = factory.create_connection().await.unwrap();
    connection.start().unwrap();
    let session = connection.create_session(Transacted).await.unwrap();
    let consumer = session.create_consumer(&q).await.unwrap();
    let others = session.create_consumer(&other).await.unwrap();
    assert_eq!(see(&consumer, 1).await, firsts(1..=1));
    assert_eq!(see(&others, 1).await, firsts(1..=1));
    for number in 0..10 {
        send_text(&session, &out, &format!("m{number}")).await;
    }
    let error = within(session.commit()).await.unwrap_err();
    assert!(matches!(error, Error::TransactionRolledBack { .. }), "{error:?}");
    assert!(error.to_string().contains("subscription"), "{error}");
    assert_eq!(broker.counts(&out).enqueued, 0, "neither one of what was sent nor nine");
    for (name, consumer) in [(&q, &consumer), (&other, &others)] {
        assert_eq!(broker.counts(name).acknowledged, 0, "{name}: it is still there");
        assert_eq!(see(consumer, 2).await, [nth("m1", 2), first("m2")], "{name}");
    }
    session.rollback().await.unwrap();

    // A transaction in which nothing is received is none of the refusal's business.
    send_text(&session, &out, "the next transaction").await;
    within(session.commit()).await.unwrap();
    assert_eq!(broker.drain(&out).await, [first("the next transaction")]);
    session.close().await.unwrap();
    connection.close().await.unwrap();
    assert_eq!(broker.counts(&q).pending, 2);
}

inventory::submit! {
    ProviderScheme { scheme: "misaddressing", open: |name| wrapped(name, Misaddressing::default) }
}

#[derive(Debug, Default)]
struct Misaddressing {
    /// The transactions that have had their acknowledgement refused.
    spoilt: Mutex<BTreeSet<String>>,
}

impl Between for Misaddressing {
    fn submit(&self, broker: &dyn ProviderConnection, mut command: Command) -> Receipt {
        if let Command::Acknowledge(ack) = &mut command
            && let Some(transaction) = &ack.transaction
            && self.spoilt.lock().unwrap().insert(format!("{transaction:?}"))
        {
            ack.subscription = nowhere();
        }
        broker.submit(command)
    }
}

/// A subscription that nobody has.
fn nowhere() -> SubscriptionId {
    SubscriptionId(u64::MAX)
}

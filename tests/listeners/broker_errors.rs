//! Failures of a listener that look like the broker's: its connection is well and stays.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use corriere::containers::{DeliveryEnd, DeliveryObserver, EndKind};
use corriere::core::ConnectionFactory;
use corriere::prelude::*;
use corriere_core::provider::{ProviderError, ProviderScheme};
use corriere_tests::wrapped::{Between, wrapped};

use crate::support::{Log, World};

/// How many connections were made at `counted://NAME`, for the embedded broker `NAME`. Only the test of this module is there.
static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);

inventory::submit! {
    ProviderScheme { scheme: "counted", open: |name| wrapped(name, Counted::new) }
}

#[derive(Debug)]
struct Counted;

impl Counted {
    fn new() -> Self {
        CONNECTIONS.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Between for Counted {}

#[jms_listener(queue = "a", ack = "transacted")]
async fn fails_as_a_broker_would(text: String, log: Bean<Log>) -> Result<(), corriere::core::Error> {
    log.add(&text);
    match text.as_str() {
        "lost" => Err(ProviderError::Lost.into()),
        "unreachable" => {
            Err(ProviderError::Unreachable { url: "tcp://elsewhere:1".into(), reason: "no route".into() }
                .into())
        }
        "rolled back" => {
            Err(corriere::core::Error::TransactionRolledBack { reason: "another transaction".into() })
        }
        _ => Ok(()),
    }
}

/// Fails whenever it is told of something.
#[derive(Debug)]
struct FailsItself(Arc<crate::support::Ends>);

impl DeliveryObserver for FailsItself {
    fn ended(&self, end: &DeliveryEnd) {
        self.0.ended(end);
        panic!("the error handler fails itself");
    }
}

/// Spring 16: Spring makes a new connection for each such failure.
#[tokio::test]
async fn an_error_of_the_brokers_kind_or_a_failing_error_handler_keeps_the_connection_and_is_reported() {
    let world = World::new().await;
    let factory = ConnectionFactory::from_url(&format!("counted://{}", world.broker.name())).unwrap();
    let container = world
        .start_with(fails_as_a_broker_would::DEF, |settings| {
            settings.factory = factory;
            settings.observer = Some(Arc::new(FailsItself(Arc::clone(&world.ends))));
        })
        .await;
    for (failures, (text, part)) in
        [("lost", "connection"), ("unreachable", "no route"), ("rolled back", "another transaction")]
            .into_iter()
            .enumerate()
    {
        world.send("a", text).await;
        world.ends.wait_for(failures * 7 + 1).await;
        world.pass_delays_until(failures * 7 + 7).await;
        let ends = world.ends.all();
        let of_this = &ends[failures * 7..];
        assert!(
            of_this.iter().all(|end| end.kind == EndKind::Redelivered || end.kind == EndKind::DeadLettered)
        );
        assert!(of_this[0].failure.as_ref().unwrap().contains(part), "{:?}", of_this[0]);
    }
    world.send("a", "good").await;
    assert_eq!(world.ends.wait_for(22).await[21].kind, EndKind::Settled);
    world.until_empty("a").await;
    assert_eq!(CONNECTIONS.load(Ordering::SeqCst), 1, "the first connection is still there");
    let status = container.status();
    assert_eq!((status.failed, status.connection_error), (21, None));
    assert_eq!(world.counts("DLQ.a").pending, 3);
}

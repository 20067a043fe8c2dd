//! Its name, its users, its clock and its end.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use corriere_broker::store::{MemoryStore, MessageStore};
use corriere_broker::{Broker, DestinationPolicy, Settings, StartError};
use corriere_core::provider::{AckKind, Capability, Cause, Command, Provider, ProviderError, provider_for};
use corriere_core::{Clock, ConnectionFactory, DestinationPattern, Error, Timestamp};

use crate::support::*;

#[tokio::test]
async fn a_message_is_sent_delivered_and_settled() {
    let broker = start("whole_way");
    let (connection, sink) = connect("whole_way").await;
    assert_eq!(connection.submit(send(message(1))).await, DONE);
    assert_eq!(sink.sequences(), [1]);
    assert_eq!(connection.submit(acknowledge(1, AckKind::Standard)).await, DONE);
    let counts = broker.counts(&orders()).unwrap();
    assert_eq!((counts.enqueued, counts.acknowledged, counts.pending), (1, 1, 0));
    assert_eq!((broker.destinations(), broker.memory_used()), (vec![orders()], 0));
}

#[tokio::test]
async fn an_outcome_that_is_known_needs_no_waiting() {
    let _broker = start("known");
    let (connection, _sink) = connect("known").await;
    for command in [send(message(1)), acknowledge(1, AckKind::Standard)] {
        let receipt = pin!(connection.submit(command));
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(receipt.poll(&mut context), Poll::Ready(DONE));
    }
}

#[tokio::test]
async fn a_name_is_taken_until_its_broker_is_gone() {
    let broker = start("taken");
    let again = || Broker::start("taken", Settings::default(), Arc::new(MemoryStore), Clock::system());
    assert_eq!(again().unwrap_err(), StartError::NameInUse { name: "taken".to_owned() });
    let (connection, _sink) = connect("taken").await;
    drop(broker);
    assert!(again().is_err(), "the connection keeps it");
    drop(connection);
    again().unwrap().stop();
    let next = again().unwrap();
    assert_eq!(next.name(), "taken");
}

#[tokio::test]
async fn two_policies_for_the_same_destinations_are_refused_and_leave_the_name_free() {
    let queues = |names: &str| DestinationPolicy::new(DestinationPattern::queue(names).unwrap());
    let topics = DestinationPolicy::new(DestinationPattern::topic("shop.>").unwrap());
    let start = |policies| {
        let settings = Settings { policies, ..Settings::default() };
        Broker::start("policed", settings, Arc::new(MemoryStore), Clock::system())
    };
    let error =
        start(vec![queues("shop.>"), queues("shop.*"), topics.clone(), queues("shop.>")]).unwrap_err();
    let pattern = "queue://shop.>".to_owned();
    assert_eq!(error, StartError::SamePattern { name: "policed".to_owned(), pattern });
    let text = "broker `policed` has two policies for `queue://shop.>`; expected one for each pattern";
    assert_eq!(error.to_string(), text);
    start(vec![queues("shop.>"), queues("shop.*"), topics]).unwrap().stop();
}

#[tokio::test]
async fn an_unknown_name_is_refused_with_those_that_run() {
    let _broker = start("running");
    let error = provider_for("vm", "//runing").unwrap_err();
    let text = error.to_string();
    assert!(text.contains("vm://runing") && text.contains("`running`"), "{text}");
}

#[test]
fn a_broker_outside_a_runtime_is_refused() {
    let started = Broker::start("nowhere", Settings::default(), Arc::new(MemoryStore), Clock::system());
    assert_eq!(started.unwrap_err(), StartError::NoRuntime { name: "nowhere".to_owned() });
}

#[tokio::test]
async fn a_client_id_has_one_connection_at_a_time() {
    let broker = start("client_ids");
    let open = || broker.connect(options(Some("billing")), Arc::new(Sink::default()));
    let first = open().await.unwrap();
    assert!(matches!(open().await, Err(ProviderError::ClientIdInUse { .. })));
    drop(first);
    let second = open().await.unwrap();
    assert_eq!(second.submit(Command::Close).await, DONE);
    open().await.unwrap();
}

#[tokio::test]
async fn a_user_or_a_password_is_refused_and_not_ignored() {
    let broker = start("users");
    for url in ["vm://users?jms.userName=ann", "vm://users?jms.password=secret"] {
        let error = ConnectionFactory::from_url(url).unwrap().create_connection().await.unwrap_err();
        assert_eq!(error, Error::Unsupported(Capability::Authentication), "{url}");
    }
    broker.connect(options(Some("billing")), Arc::new(Sink::default())).await.unwrap();
}

#[tokio::test]
async fn a_stopped_broker_tells_everyone() {
    let store = Arc::new(SlowStore::default());
    let dyn_store = Arc::clone(&store) as Arc<dyn MessageStore>;
    let broker = Broker::start("stopped", Settings::default(), dyn_store, Clock::system()).unwrap();
    let (connection, sink) = connect("stopped").await;
    let unconfirmed = connection.submit(send(message(1)));
    broker.stop();
    assert_eq!(within(unconfirmed).await, Err(ProviderError::Lost));
    assert!(sink.is_lost());
    let stopped =
        ProviderError::Stopped { broker: "stopped".to_owned(), reason: "it was told to".to_owned() };
    assert_eq!(connection.submit(send(message(2))).await, Err(stopped.clone()));
    assert_eq!(connection.submit(Command::Close).await, Err(stopped.clone()));
    let refused = broker.connect(options(None), Arc::new(Sink::default())).await.unwrap_err();
    assert_eq!(refused, stopped);
    store.complete(&Ok(()));
    assert!(sink.sequences().is_empty());
    start("stopped").stop();
}

#[tokio::test]
async fn a_redelivery_comes_when_the_clock_says_so_and_not_before() {
    let clock = Clock::manual(Timestamp(1_000));
    let _broker =
        Broker::start("on_time", Settings::default(), Arc::new(MemoryStore), clock.clone()).unwrap();
    let (connection, sink) = connect("on_time").await;
    assert_eq!(connection.submit(send(message(1))).await, DONE);
    for count in 2..=4 {
        let failed = AckKind::Redelivered { delay: None, cause: Cause::failure("E1") };
        assert_eq!(connection.submit(acknowledge(count - 1, failed)).await, DONE);
        clock.advance(Duration::from_millis(999));
        tokio::task::yield_now().await;
        assert_eq!(sink.sequences().len() as u64, count - 1);
        clock.advance(Duration::from_millis(1));
        sink.wait_for(count as usize).await;
    }
}

#[tokio::test]
async fn an_earlier_moment_rearms_the_timekeeper() {
    let clock = Clock::manual(Timestamp(1_000));
    let broker = Broker::start("earlier", Settings::default(), Arc::new(MemoryStore), clock.clone()).unwrap();
    let (connection, sink) = connect("earlier").await;
    let mut late = message(1);
    late.headers_mut().expiration = Some(Timestamp(1_000_000));
    assert_eq!(connection.submit(send(late)).await, DONE);
    tokio::task::yield_now().await;
    let failed = AckKind::Redelivered { delay: Some(Duration::from_secs(2)), cause: Cause::failure("E1") };
    assert_eq!(connection.submit(acknowledge(1, failed)).await, DONE);
    clock.advance(Duration::from_secs(2));
    sink.wait_for(2).await;
    assert_eq!(broker.counts(&orders()).unwrap().redelivered, 1);
}

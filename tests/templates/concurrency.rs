//! Sends overlap, so that the store can commit them together; their number is bounded; a lost connection is replaced.

use std::collections::BTreeSet;
use std::sync::Arc;

use corriere_broker::Broker;
use corriere_broker::store::MemoryStore;
use corriere_core::provider::ProviderError;
use corriere_core::{ConnectionFactory, Error};
use corriere_templates::{JmsTemplate, TemplateError};

use crate::support::{Bench, GatedStore, settings, until, within};

fn send_many(template: &JmsTemplate, count: u32) -> tokio::task::JoinSet<()> {
    let mut sends = tokio::task::JoinSet::new();
    for number in 0..count {
        let template = template.clone();
        sends.spawn(async move { drop(template.convert_and_send(&number).await.unwrap()) });
    }
    sends
}

#[tokio::test]
async fn sixty_four_sends_wait_for_the_store_together_and_all_arrive() {
    let store = Arc::new(GatedStore::default());
    let bench = Bench::with_store(Arc::clone(&store) as Arc<_>);
    let template = bench.template();
    let sends = send_many(&template, 64);
    until("all sends are at the store", || store.waiting() == 64).await;
    store.open();
    within(sends.join_all()).await;
    let mut received = BTreeSet::new();
    while let Some(number) = template.receive_and_convert::<u32>().await.unwrap() {
        assert!(received.insert(number), "{number} came twice");
    }
    assert_eq!(received, (0..64).collect());
}

#[tokio::test]
async fn no_more_sends_than_sessions_are_under_way() {
    let store = Arc::new(GatedStore::default());
    let bench = Bench::with_store(Arc::clone(&store) as Arc<_>);
    let template = bench.builder().sessions(2).build().unwrap();
    let sends = send_many(&template, 10);
    for sent in 1..=5 {
        until("two sends are at the store", || store.waiting() == 2).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(store.waiting(), 2, "round {sent}");
        store.complete_waiting();
    }
    within(sends.join_all()).await;
    assert_eq!(bench.counts("orders").enqueued, 10);
}

#[tokio::test]
async fn receives_that_wait_do_not_keep_sends_from_going_out() {
    let bench = Bench::start();
    let template = bench.builder().sessions(1).build().unwrap();
    let waiting = template.with_receive_timeout(corriere_templates::ReceiveTimeout::Indefinite);
    let mut receives = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let waiting = waiting.clone();
        receives.spawn(async move { waiting.receive_and_convert::<u32>().await.unwrap().unwrap() });
    }
    within(send_many(&template, 4).join_all()).await;
    let mut received = within(receives.join_all()).await;
    received.sort_unstable();
    assert_eq!(received, [0, 1, 2, 3]);
}

#[tokio::test]
async fn one_call_after_the_other_uses_the_same_session() {
    let bench = Bench::start();
    let template = bench.template();
    let first = template.convert_and_send("a").await.unwrap();
    let second = template.convert_and_send("b").await.unwrap();
    assert_eq!(first.producer, second.producer);
    assert_eq!(second.sequence, first.sequence + 1);
}

/// C-17.
#[tokio::test]
async fn a_lost_connection_fails_the_call_and_is_replaced_for_the_next() {
    let bench = Bench::start();
    let template = bench.template();
    template.convert_and_send("a").await.unwrap();
    let name = bench.broker.name().to_owned();
    bench.broker.stop();
    let error = within(template.convert_and_send("b")).await.unwrap_err();
    assert!(matches!(error, TemplateError::Client(_)), "{error}");
    let _broker = Broker::start(&name, settings(), Arc::new(MemoryStore), bench.clock.clone()).unwrap();
    within(template.convert_and_send("c")).await.unwrap();
    assert_eq!(within(template.receive_and_convert::<String>()).await.unwrap().as_deref(), Some("c"));
}

#[tokio::test]
async fn a_broker_that_comes_later_is_found() {
    let template = JmsTemplate::builder(ConnectionFactory::from_url("vm://templates-comes-later").unwrap())
        .default_destination("orders")
        .build()
        .unwrap();
    assert!(matches!(within(template.convert_and_send("a")).await, Err(TemplateError::Client(_))));
    let clock = corriere_core::Clock::system();
    let _broker = Broker::start("templates-comes-later", settings(), Arc::new(MemoryStore), clock).unwrap();
    within(template.convert_and_send("b")).await.unwrap();
}

/// C-34: five sessions on a factory with a client id are those of one connection; a second connection is refused by name.
#[tokio::test]
async fn a_template_of_five_sessions_has_its_client_id_once_and_a_second_template_is_refused() {
    let store = Arc::new(GatedStore::default());
    let bench = Bench::with_store(Arc::clone(&store) as Arc<_>);
    let url = format!("vm://{}?jms.clientID=billing", bench.broker.name());
    let factory = ConnectionFactory::from_url(&url).unwrap();
    let template =
        JmsTemplate::builder(factory.clone()).default_destination("orders").sessions(5).build().unwrap();
    let sends = send_many(&template, 5);
    until("five sends are at the store", || store.waiting() == 5).await;
    let second = JmsTemplate::builder(factory).default_destination("orders").build().unwrap();
    let refused = within(second.convert_and_send("x")).await.unwrap_err();
    assert!(
        matches!(&refused, TemplateError::Client(Error::Provider(ProviderError::ClientIdInUse { .. }))),
        "{refused}"
    );
    assert!(refused.to_string().contains("billing"), "{refused}");
    store.open();
    within(sends.join_all()).await;
    drop(template);
    within(second.convert_and_send("x")).await.unwrap();
    assert_eq!(bench.counts("orders").enqueued, 6, "nothing is lost or sent twice");
}

//! A handler receives, sends, and fails: what it sent through a template must go the way of what it received
//! (spring-framework#37311: the reply is out although the receive was undone).

use std::sync::Arc;
use std::time::Duration;

use corriere_core::client::with_session;
use corriere_core::provider::Cause;
use corriere_core::{AcknowledgeMode, Consumer, Destination, Message, Release, Session};
use corriere_templates::{ConversionError, JmsTemplate, ReceiveTimeout, TemplateError};

use crate::support::{Bench, within};

/// A listener on `orders`, as a container runs one.
struct Listener {
    session: Session,
    consumer: Consumer,
}

impl Listener {
    async fn start(bench: &Bench, mode: AcknowledgeMode) -> Self {
        let connection = bench.factory.create_connection().await.unwrap();
        connection.start().unwrap();
        let session = connection.create_session(mode).await.unwrap();
        let consumer = session.create_consumer(&Destination::queue("orders").unwrap()).await.unwrap();
        Self { session, consumer }
    }

    /// Handles one delivery; `false` when none came.
    async fn handle<E: ToString>(&self, handler: impl AsyncFn(&Message) -> Result<(), E>) -> bool {
        let Some(delivery) = within(self.consumer.take_timeout(Duration::ZERO)).await.unwrap() else {
            return false;
        };
        match within(self.session.run_handler(handler(&delivery))).await {
            Ok(()) if self.session.is_transacted() => self.session.commit().await.unwrap(),
            Ok(()) => delivery.acknowledge().await.unwrap(),
            Err(error) => {
                let cause = Cause::failure(error.to_string());
                delivery.release(Release::Redeliver { delay: None, cause }).await.unwrap();
            }
        }
        true
    }
}

/// Sends to `audit` and `replies`, then fails unless this is delivery number `succeeds_at`.
async fn send_then_fail(template: &JmsTemplate, order: &Message, succeeds_at: u32) -> Result<(), String> {
    template.convert_and_send_to("audit", "seen").await.unwrap();
    template.convert_and_send_to("replies", "confirmed").await.unwrap();
    if order.headers().delivery_count == succeeds_at { Ok(()) } else { Err("not yet".to_owned()) }
}

fn sent(bench: &Bench) -> (u64, u64) {
    (bench.counts("audit").enqueued, bench.counts("replies").enqueued)
}

/// C-14, Spring 1, Spring 8.
#[tokio::test]
async fn what_a_failed_handler_sent_is_never_seen_and_a_success_is_seen_once() {
    let bench = Bench::start();
    let template = bench.template();
    template.convert_and_send("an order").await.unwrap();
    let listener = Listener::start(&bench, AcknowledgeMode::Transacted).await;
    for _ in 0..2 {
        assert!(listener.handle(async |order| send_then_fail(&template, order, 3).await).await);
        assert_eq!(sent(&bench), (0, 0));
    }
    assert!(listener.handle(async |order| send_then_fail(&template, order, 3).await).await);
    assert_eq!(sent(&bench), (1, 1));
    assert!(!listener.handle(async |order| send_then_fail(&template, order, 3).await).await);
    assert_eq!(bench.counts("orders").acknowledged, 1);
}

/// C-14, Spring 1.
#[tokio::test]
async fn a_handler_that_always_fails_sends_nothing_and_its_message_is_a_dead_letter() {
    let bench = Bench::start();
    let template = bench.template();
    template.convert_and_send("an order").await.unwrap();
    let listener = Listener::start(&bench, AcknowledgeMode::Transacted).await;
    let mut deliveries = 0;
    while listener.handle(async |order| send_then_fail(&template, order, 0).await).await {
        deliveries += 1;
    }
    assert_eq!(deliveries, 3);
    assert_eq!(sent(&bench), (0, 0));
    assert_eq!(bench.counts("DLQ.orders").pending, 1);
}

/// C-14.
#[tokio::test]
async fn a_template_on_another_factory_or_detached_sends_every_time() {
    for detach in [false, true] {
        let bench = Bench::start();
        let template = if detach {
            bench.template().detached()
        } else {
            JmsTemplate::builder(bench.other_factory()).build().unwrap()
        };
        bench.template().convert_and_send("an order").await.unwrap();
        let listener = Listener::start(&bench, AcknowledgeMode::Transacted).await;
        while listener.handle(async |order| send_then_fail(&template, order, 3).await).await {}
        assert_eq!(sent(&bench), (3, 3), "detached: {detach}");
        assert_eq!(bench.counts("orders").acknowledged, 1);
    }
}

#[tokio::test]
async fn a_handler_without_a_transaction_sends_every_time() {
    let bench = Bench::start();
    let template = bench.template();
    template.convert_and_send("an order").await.unwrap();
    let listener = Listener::start(&bench, AcknowledgeMode::Auto).await;
    while listener.handle(async |order| send_then_fail(&template, order, 3).await).await {}
    assert_eq!(sent(&bench), (3, 3));
}

#[tokio::test]
async fn a_spawned_task_joins_only_with_the_session_it_was_given() {
    let bench = Bench::start();
    let template = bench.template();
    template.convert_and_send("an order").await.unwrap();
    let listener = Listener::start(&bench, AcknowledgeMode::Transacted).await;
    listener
        .handle(async |_| {
            let session = Session::current().unwrap();
            let joined = template.clone();
            tokio::spawn(with_session(session, async move {
                joined.convert_and_send_to("joined", "a").await.unwrap();
            }))
            .await
            .unwrap();
            let alone = template.clone();
            tokio::spawn(async move { alone.convert_and_send_to("alone", "b").await.unwrap() })
                .await
                .unwrap();
            Err("fails")
        })
        .await;
    assert_eq!(bench.counts("joined").enqueued, 0);
    assert_eq!(bench.counts("alone").enqueued, 1);
}

#[tokio::test]
async fn what_a_handler_received_through_a_template_returns_when_it_fails() {
    let bench = Bench::start();
    let template = bench.template();
    template.convert_and_send("an order").await.unwrap();
    template.convert_and_send_to("stock", "an item").await.unwrap();
    let listener = Listener::start(&bench, AcknowledgeMode::Transacted).await;
    let take_stock = async |order: &Message| {
        let item = template.receive_and_convert_from::<String>("stock").await.unwrap();
        assert_eq!(item.as_deref(), Some("an item"));
        if order.headers().delivery_count == 2 { Ok(()) } else { Err("fails") }
    };
    assert!(listener.handle(take_stock).await);
    assert_eq!(bench.counts("stock").pending, 1);
    assert!(listener.handle(take_stock).await);
    assert_eq!(bench.counts("stock").pending, 0);
    assert_eq!(bench.counts("stock").acknowledged, 1);
}

#[tokio::test]
async fn a_conversion_that_fails_in_a_handler_leaves_the_message_in_its_transaction() {
    let bench = Bench::start();
    let template = bench.template();
    template.convert_and_send("an order").await.unwrap();
    template.send_to("stock", &Message::text("many")).await.unwrap();
    let listener = Listener::start(&bench, AcknowledgeMode::Transacted).await;
    let take_stock = async |_: &Message| match template.receive_and_convert_from::<u32>("stock").await {
        Err(TemplateError::Conversion(ConversionError::Read { .. })) => Err("no number"),
        other => panic!("{other:?}"),
    };
    listener.handle(take_stock).await;
    let item = template.receive_from("stock").await.unwrap().unwrap();
    assert_eq!(item.headers().delivery_count, 2);
}

#[tokio::test]
async fn a_handler_may_get_over_a_failed_conversion_and_keeps_what_it_sent() {
    let bench = Bench::start();
    let template = bench.template();
    template.convert_and_send("an order").await.unwrap();
    template.send_to("stock", &Message::text("many")).await.unwrap();
    let listener = Listener::start(&bench, AcknowledgeMode::Transacted).await;
    listener
        .handle(async |_| {
            template.convert_and_send_to("audit", "seen").await.unwrap();
            template.receive_and_convert_from::<u32>("stock").await.unwrap_err();
            Ok::<_, String>(())
        })
        .await;
    assert_eq!(bench.counts("audit").enqueued, 1);
    assert_eq!(bench.counts("orders").acknowledged, 1);
    assert_eq!(bench.counts("stock").acknowledged, 1);
}

/// Spring 7.
#[tokio::test]
async fn one_call_of_a_transacted_template_is_sent_as_a_whole_or_not_at_all() {
    let bench = Bench::start();
    let template = bench.builder().transacted(true).build().unwrap();
    let orders = Arc::new(Destination::queue("orders").unwrap());
    let send = |count: usize, fails: bool| {
        let orders = Arc::clone(&orders);
        template.execute(move |session| async move {
            for number in 0..count {
                let message = Message::text(format!("{number}"));
                session.send(&orders, &message, &Default::default()).await?;
            }
            if fails { Err(TemplateError::callback("changed my mind")) } else { Ok(count) }
        })
    };
    assert!(matches!(within(send(2, true)).await, Err(TemplateError::Callback(_))));
    assert_eq!(bench.counts("orders").enqueued, 0);
    // What the failed call had sent must not be committed by this one.
    assert_eq!(within(send(3, false)).await.unwrap(), 3);
    assert_eq!(bench.counts("orders").enqueued, 3);
    within(template.convert_and_send("one more")).await.unwrap();
    assert_eq!(bench.counts("orders").enqueued, 4);
    assert!(within(template.receive()).await.unwrap().is_some());
    assert_eq!(bench.counts("orders").pending, 3);
}

/// Spring 15: Spring's receive without end blocks a transaction beyond its timeout. Here whoever has a deadline drops the
/// future, which takes and counts nothing, and the transaction goes on.
#[tokio::test]
async fn a_receive_without_end_that_is_dropped_at_a_deadline_holds_up_no_transaction_and_loses_nothing() {
    let bench = Bench::start();
    let template = bench.template().with_receive_timeout(ReceiveTimeout::Indefinite);
    template.convert_and_send("an order").await.unwrap();
    let listener = Listener::start(&bench, AcknowledgeMode::Transacted).await;
    let gives_up = async |_: &Message| {
        template.convert_and_send_to("audit", "seen").await.unwrap();
        let deadline = async {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            received = template.receive_from("stock") => panic!("{received:?}"),
            () = deadline => Ok::<_, String>(()),
        }
    };
    assert!(listener.handle(gives_up).await);
    assert_eq!((bench.counts("orders").acknowledged, bench.counts("audit").enqueued), (1, 1));
    template.convert_and_send_to("stock", "an item").await.unwrap();
    let item = within(template.receive_from("stock")).await.unwrap().unwrap();
    assert_eq!(item.headers().delivery_count, 1);
    assert_eq!(bench.counts("stock").pending, 0);
}

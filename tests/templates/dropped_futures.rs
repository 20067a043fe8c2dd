//! A future that is dropped half-way, as `select!` and timeouts do, loses nothing and counts nothing.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;

use corriere_core::client::with_session;
use corriere_core::{AcknowledgeMode, Error};
use corriere_templates::{JmsTemplate, ReceiveTimeout};

use crate::support::{Bench, GatedStore, until, within};

/// Polls `future` for as long as `turns` yields take, then drops it.
async fn for_turns<F: Future>(turns: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let turns_pass = async {
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        output = &mut future => Some(output),
        () = turns_pass => None,
    }
}

async fn send_numbers(template: &JmsTemplate, count: u32) {
    for number in 0..count {
        template.convert_and_send(&number).await.unwrap();
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_dropped_receive_neither_loses_nor_counts_a_message() {
    const COUNT: u32 = 100;
    let bench = Bench::start();
    let template = bench.template().with_receive_timeout(ReceiveTimeout::Indefinite);
    let sender = tokio::spawn({
        let template = template.clone();
        async move { send_numbers(&template, COUNT).await }
    });
    let mut received = BTreeSet::new();
    let mut turns = 0;
    within(async {
        while received.len() < COUNT as usize {
            turns = (turns + 1) % 12;
            let Some(message) = for_turns(turns, template.receive()).await else { continue };
            let message = message.unwrap().unwrap();
            assert_eq!(message.headers().delivery_count, 1);
            assert!(received.insert(message.as_text().unwrap().unwrap().to_owned()), "one came twice");
        }
    })
    .await;
    sender.await.unwrap();
    assert_eq!(bench.counts("orders").pending, 0);
    assert_eq!(bench.counts("orders").redelivered, 0);
}

#[tokio::test]
async fn a_dropped_converting_receive_neither_loses_nor_counts_a_message() {
    const COUNT: u32 = 100;
    // Acknowledgements of persistent messages wait for this store, so that there is a moment to be dropped in.
    let store = Arc::new(GatedStore::default());
    let bench = Bench::with_store(Arc::clone(&store) as Arc<_>);
    let template = bench.template().with_receive_timeout(ReceiveTimeout::Indefinite);
    let sender = tokio::spawn({
        let template = template.clone();
        async move { send_numbers(&template, COUNT).await }
    });
    let completer = tokio::spawn(async move {
        loop {
            tokio::task::yield_now().await;
            store.complete_waiting();
        }
    });
    let mut received = BTreeSet::new();
    let mut turns = 0;
    within(async {
        while received.len() < COUNT as usize {
            turns = (turns + 1) % 12;
            let Some(number) = for_turns(turns, template.receive_and_convert::<u32>()).await else {
                continue;
            };
            assert!(received.insert(number.unwrap().unwrap()), "one came twice");
        }
    })
    .await;
    sender.await.unwrap();
    until("the last acknowledgement is complete", || bench.counts("orders").pending == 0).await;
    completer.abort();
    assert_eq!(bench.counts("orders").redelivered, 0);
}

#[tokio::test]
async fn a_dropped_send_does_not_disturb_the_next() {
    let store = Arc::new(GatedStore::default());
    let bench = Bench::with_store(Arc::clone(&store) as Arc<_>);
    let template = bench.template();
    let dropped = tokio::spawn({
        let template = template.clone();
        async move { template.convert_and_send("dropped").await }
    });
    until("the send is at the store", || store.waiting() == 1).await;
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    store.open();
    within(template.convert_and_send("next")).await.unwrap();
    let mut received = Vec::new();
    while let Some(text) = template.receive_and_convert::<String>().await.unwrap() {
        received.push(text);
    }
    // The first was on its way already, which is allowed; the second has to be there, and nothing twice.
    assert!(received == ["dropped", "next"] || received == ["next"], "{received:?}");
}

#[tokio::test]
async fn a_send_dropped_in_a_transaction_makes_it_a_rollback() {
    let bench = Bench::start();
    let template = bench.template();
    let connection = bench.factory.create_connection().await.unwrap();
    let session = connection.create_session(AcknowledgeMode::Transacted).await.unwrap();
    within(with_session(session.clone(), async {
        template.convert_and_send("kept?").await.unwrap();
        {
            let mut send = pin!(template.convert_and_send("dropped"));
            let first_poll =
                std::future::poll_fn(|context| std::task::Poll::Ready(send.as_mut().poll(context)));
            // The embedded broker may have answered within the first poll, in which case there was nothing to drop.
            if first_poll.await.is_ready() {
                session.rollback().await.unwrap();
                return;
            }
        }
        assert!(matches!(session.commit().await, Err(Error::TransactionRolledBack { .. })));
    }))
    .await;
    assert_eq!(bench.counts("orders").enqueued, 0);
}

#[tokio::test]
async fn an_execute_dropped_half_way_is_rolled_back() {
    let bench = Bench::start();
    let template = bench.builder().transacted(true).build().unwrap();
    let orders = template.default_destination().unwrap().clone();
    let reached = Arc::new(tokio::sync::Notify::new());
    let task = tokio::spawn({
        let (template, reached) = (template.clone(), Arc::clone(&reached));
        async move {
            template
                .execute(|session| async move {
                    session.send(&orders, &corriere_core::Message::text("x"), &Default::default()).await?;
                    reached.notify_one();
                    std::future::pending::<Result<(), corriere_templates::TemplateError>>().await
                })
                .await
        }
    });
    within(reached.notified()).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    within(template.convert_and_send("next")).await.unwrap();
    assert_eq!(template.receive_and_convert::<String>().await.unwrap().as_deref(), Some("next"));
    assert!(template.receive().await.unwrap().is_none());
}

//! Not waiting and waiting for ever must not be mixed up (spring-framework#1043), whatever the prefetch.

use std::time::Duration;

use corriere_core::Message;
use corriere_templates::ReceiveTimeout;

use crate::support::{Bench, others_run, until, within};

/// C-16.
#[tokio::test]
async fn without_waiting_an_empty_queue_gives_nothing() {
    let bench = Bench::start();
    let template = bench.template();
    assert!(within(template.receive()).await.unwrap().is_none());
    let zero = template.with_receive_timeout(Duration::ZERO);
    assert!(within(zero.receive()).await.unwrap().is_none());
    assert!(within(zero.receive_and_convert::<String>()).await.unwrap().is_none());
}

/// C-16.
#[tokio::test]
async fn without_waiting_a_message_that_is_there_is_always_found() {
    let bench = Bench::start();
    let template = bench.template();
    for number in 0..200 {
        template.convert_and_send(&number).await.unwrap();
        let received: Option<u32> = within(template.receive_and_convert()).await.unwrap();
        assert_eq!(received, Some(number));
    }
}

/// C-16.
#[tokio::test]
async fn a_timeout_is_waited_out_and_not_longer() {
    let bench = Bench::start();
    for timeout in [1, 500] {
        let timeout = Duration::from_millis(timeout);
        let template = bench.template().with_receive_timeout(timeout);
        let task = tokio::spawn(async move { template.receive().await.unwrap().is_none() });
        others_run().await;
        bench.clock.advance(timeout - Duration::from_millis(1));
        others_run().await;
        assert!(!task.is_finished(), "{timeout:?}");
        bench.clock.advance(Duration::from_millis(1));
        assert!(within(task).await.unwrap(), "{timeout:?}");
    }
}

/// C-16, also with the longest timeout that JMS can say.
#[tokio::test]
async fn waiting_for_ever_ends_with_the_first_message() {
    let bench = Bench::start();
    let longest = Duration::from_millis(i64::MAX as u64);
    for timeout in
        [ReceiveTimeout::Indefinite, ReceiveTimeout::After(longest), ReceiveTimeout::After(Duration::MAX)]
    {
        let template = bench.template().with_receive_timeout(timeout);
        let task = tokio::spawn({
            let template = template.clone();
            async move { template.receive_and_convert::<String>().await.unwrap() }
        });
        until("the queue exists", || !bench.broker.destinations().is_empty()).await;
        bench.clock.advance(Duration::from_hours(1_000_000));
        assert!(!task.is_finished());
        template.convert_and_send("at last").await.unwrap();
        assert_eq!(within(task).await.unwrap().as_deref(), Some("at last"));
    }
}

#[tokio::test]
async fn a_receive_takes_one_message_and_leaves_the_rest_to_others() {
    let bench = Bench::start();
    let template = bench.template();
    for number in 0..3 {
        template.send(&Message::text(number.to_string())).await.unwrap();
    }
    assert!(template.receive().await.unwrap().is_some());
    assert_eq!(bench.counts("orders").pending, 2);
    assert_eq!(bench.counts("orders").in_flight, 0);
}

//! Message listeners that are set on a consumer.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::provider::ProviderError;
use corriere_core::{Connection, Consumer, Delivery, Error};
use tokio::sync::{Notify, Semaphore};

use crate::support::{Seen, TestBroker, first, firsts, nth, others_run, queue, text, within};

/// Notes what a listener sees; fails with the text of `fails` where it gives one.
fn note(
    consumer: &Consumer,
    fails: impl Fn(&Seen) -> Option<&'static str> + Send + Sync + 'static,
) -> Arc<Mutex<Vec<Seen>>> {
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let notes = Arc::clone(&seen);
    consumer
        .set_message_listener(move |delivery| {
            let now = Seen::of(&delivery);
            let failure = fails(&now);
            notes.lock().unwrap().push(now);
            async move {
                match failure {
                    Some("panic") => panic!("the handler panics"),
                    Some(text) => Err(text.into()),
                    None => Ok(()),
                }
            }
        })
        .unwrap();
    seen
}

#[tokio::test]
async fn a_receive_beside_a_listener_is_an_error_and_so_is_a_second_listener() {
    let broker = TestBroker::start();
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&queue("q")).await.unwrap();
    consumer.set_message_listener(|_| async { Ok(()) }).unwrap();
    for error in [
        consumer.receive().await.unwrap_err(),
        consumer.receive_no_wait().await.unwrap_err(),
        consumer.receive_timeout(std::time::Duration::MAX).await.unwrap_err(),
        consumer.take().await.unwrap_err(),
        consumer.set_message_listener(|_| async { Ok(()) }).unwrap_err(),
    ] {
        assert!(matches!(&error, Error::IllegalState { .. }), "{error:?}");
        assert!(error.to_string().contains("has a message listener"), "{error}");
    }
}

#[tokio::test]
async fn a_listener_on_a_pulling_consumer_is_refused_in_words() {
    let broker = TestBroker::start();
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer_with_prefetch(&queue("q"), 0).await.unwrap();
    let error = consumer.set_message_listener(|_| async { Ok(()) }).unwrap_err();
    assert!(error.to_string().contains("prefetch is 0"), "{error}");
    assert!(consumer.receive_no_wait().await.unwrap().is_none(), "it is still a consumer");
}

#[tokio::test]
async fn in_auto_a_message_is_acknowledged_only_when_its_listener_has_returned() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let (started, end) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (has_started, may_end) = (Arc::clone(&started), Arc::clone(&end));
    consumer
        .set_message_listener(move |_| {
            let (has_started, may_end) = (Arc::clone(&has_started), Arc::clone(&may_end));
            async move {
                has_started.add_permits(1);
                may_end.acquire().await?.forget();
                Ok(())
            }
        })
        .unwrap();
    broker.send_numbered(&q, 1).await;
    within(started.acquire()).await.unwrap().forget();
    assert_eq!((broker.counts(&q).acknowledged, broker.counts(&q).in_flight), (0, 1));
    end.add_permits(1);
    broker.until(&q, |counts| counts.acknowledged == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listeners_of_one_session_run_one_at_a_time() {
    let broker = TestBroker::start();
    let (q, other) = (queue("q"), queue("other"));
    let session = broker.session(Auto).await;
    let consumers =
        [session.create_consumer(&q).await.unwrap(), session.create_consumer(&other).await.unwrap()];
    let at_work = Arc::new(AtomicUsize::new(0));
    let overlapped = Arc::new(AtomicBool::new(false));
    for consumer in &consumers {
        let (at_work, overlapped) = (Arc::clone(&at_work), Arc::clone(&overlapped));
        consumer
            .set_message_listener(move |_| {
                let (at_work, overlapped) = (Arc::clone(&at_work), Arc::clone(&overlapped));
                async move {
                    if at_work.fetch_add(1, Ordering::SeqCst) > 0 {
                        overlapped.store(true, Ordering::SeqCst);
                    }
                    others_run().await;
                    at_work.fetch_sub(1, Ordering::SeqCst);
                    Ok(())
                }
            })
            .unwrap();
    }
    broker.send_numbered(&q, 50).await;
    broker.send_numbered(&other, 50).await;
    broker.until(&q, |counts| counts.acknowledged == 50).await;
    broker.until(&other, |counts| counts.acknowledged == 50).await;
    assert!(!overlapped.load(Ordering::SeqCst));
}

/// C-08 (a).
#[tokio::test]
async fn sessions_that_finish_out_of_order_acknowledge_without_error() {
    let broker = TestBroker::start();
    let q = queue("q");
    let connection = broker.connect().await;
    let second_done = Arc::new(Notify::new());
    let mut consumers = Vec::new();
    for _ in 0..2 {
        let session = connection.create_session(Client).await.unwrap();
        let consumer = session.create_consumer_with_prefetch(&q, 1).await.unwrap();
        let second_done = Arc::clone(&second_done);
        consumer
            .set_message_listener(move |delivery| {
                let second_done = Arc::clone(&second_done);
                async move {
                    if text(&delivery) == "m1" {
                        second_done.notified().await;
                        delivery.acknowledge().await?;
                    } else {
                        delivery.acknowledge().await?;
                        second_done.notify_one();
                    }
                    Ok(())
                }
            })
            .unwrap();
        consumers.push(consumer);
    }
    broker.send_numbered(&q, 2).await;
    broker.until(&q, |counts| counts.acknowledged == 2 && counts.pending == 0).await;
    assert!(connection.is_open());
}

#[tokio::test]
async fn a_message_that_fails_once_comes_again_before_those_behind_it() {
    for failure in ["no luck", "panic"] {
        let broker = TestBroker::start();
        let q = queue("q");
        broker.send_numbered(&q, 3).await;
        let session = broker.session(Auto).await;
        let consumer = session.create_consumer(&q).await.unwrap();
        let seen = note(&consumer, move |now| (*now == first("m1")).then_some(failure));
        broker.until(&q, |counts| counts.acknowledged == 3).await;
        assert_eq!(*seen.lock().unwrap(), [first("m1"), nth("m1", 2), first("m2"), first("m3")], "{failure}");
    }
}

#[tokio::test]
async fn a_message_that_always_fails_goes_to_the_dead_letters_and_the_rest_goes_on() {
    let broker = TestBroker::start();
    let q = queue("q");
    broker.send_numbered(&q, 3).await;
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let seen = note(&consumer, |now| (now.text == "m2").then_some("E1"));
    broker.until(&q, |counts| counts.pending == 0).await;
    assert_eq!(broker.counts(&q).dead_lettered, 1);
    assert_eq!(*seen.lock().unwrap(), [first("m1"), first("m2"), nth("m2", 2), nth("m2", 3), first("m3")]);
}

#[tokio::test]
async fn a_failure_in_client_or_transacted_leaves_the_message_to_the_session() {
    for mode in [Client, Transacted] {
        let broker = TestBroker::start();
        let q = queue("q");
        broker.send_numbered(&q, 2).await;
        let session = broker.session(mode).await;
        let consumer = session.create_consumer(&q).await.unwrap();
        let seen = note(&consumer, |now| (now.text == "m1").then_some("E1"));
        within(async {
            while seen.lock().unwrap().len() < 2 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        others_run().await;
        assert_eq!((broker.counts(&q).acknowledged, broker.counts(&q).in_flight), (0, 2), "{mode:?}");
        session.close().await.unwrap();
        assert_eq!(broker.drain(&q).await, [nth("m1", 2), nth("m2", 2)]);
    }
}

#[tokio::test]
async fn dropping_the_consumer_ends_its_listener_and_returns_the_rest_uncounted() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let (started, end) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (has_started, may_end) = (Arc::clone(&started), Arc::clone(&end));
    let alive = Arc::new(());
    let in_listener = Arc::clone(&alive);
    consumer
        .set_message_listener(move |_| {
            let (has_started, may_end) = (Arc::clone(&has_started), Arc::clone(&may_end));
            let _kept = &in_listener;
            async move {
                has_started.add_permits(1);
                may_end.acquire().await?.forget();
                Ok(())
            }
        })
        .unwrap();
    broker.send_numbered(&q, 3).await;
    within(started.acquire()).await.unwrap().forget();
    drop((consumer, session));
    end.add_permits(1);
    broker.until(&q, |counts| counts.acknowledged == 1).await;
    assert_eq!(broker.drain(&q).await, firsts(2..=3));
    within(async {
        while Arc::strong_count(&alive) > 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Two listeners of one session, the first of which holds its message until it is told to end. Both have a message.
struct Held {
    connection: Connection,
    first: Consumer,
    second: Consumer,
    end: Arc<Semaphore>,
    second_ran: Arc<AtomicBool>,
}

impl Held {
    async fn start(broker: &TestBroker) -> Self {
        let connection = broker.connect().await;
        let session = connection.create_session(Auto).await.unwrap();
        let first = session.create_consumer(&queue("first")).await.unwrap();
        let second = session.create_consumer(&queue("second")).await.unwrap();
        let (started, end) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let second_ran = Arc::new(AtomicBool::new(false));
        let (has_started, may_end) = (Arc::clone(&started), Arc::clone(&end));
        first
            .set_message_listener(move |_| {
                let (has_started, may_end) = (Arc::clone(&has_started), Arc::clone(&may_end));
                async move {
                    has_started.add_permits(1);
                    may_end.acquire().await?.forget();
                    Ok(())
                }
            })
            .unwrap();
        broker.send(&queue("first"), ["m1"]).await;
        within(started.acquire()).await.unwrap().forget();
        let ran = Arc::clone(&second_ran);
        second
            .set_message_listener(move |_: Delivery| {
                ran.store(true, Ordering::SeqCst);
                async { Ok(()) }
            })
            .unwrap();
        broker.send(&queue("second"), ["m2"]).await;
        others_run().await;
        Self { connection, first, second, end, second_ran }
    }
}

#[tokio::test]
async fn a_close_returns_what_waits_for_its_turn_uncounted_and_never_handles_it() {
    let broker = TestBroker::start();
    let held = Held::start(&broker).await;
    let close = tokio::spawn({
        let connection = held.connection.clone();
        async move { connection.close().await }
    });
    others_run().await;
    assert!(!close.is_finished(), "a handler is at work");
    held.end.add_permits(1);
    within(close).await.unwrap().unwrap();
    others_run().await;
    assert!(!held.second_ran.load(Ordering::SeqCst));
    assert_eq!(broker.counts(&queue("first")).acknowledged, 1);
    assert_eq!(broker.drain(&queue("second")).await, [first("m2")]);
}

#[tokio::test]
async fn closing_a_consumer_returns_what_waits_for_its_turn_uncounted() {
    let broker = TestBroker::start();
    let held = Held::start(&broker).await;
    let close = async {
        held.second.close().await.unwrap();
    };
    let end = async {
        others_run().await;
        held.end.add_permits(1);
    };
    within(async { tokio::join!(close, end) }).await;
    assert!(!held.second_ran.load(Ordering::SeqCst));
    assert_eq!(broker.drain(&queue("second")).await, [first("m2")]);
    held.first.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_a_consumer_is_not_held_up_by_the_traffic_of_another() {
    let broker = TestBroker::start();
    let (busy, idle) = (queue("busy"), queue("idle"));
    let session = broker.session(Auto).await;
    let (at_work, closing) =
        (session.create_consumer(&busy).await.unwrap(), session.create_consumer(&idle).await.unwrap());
    closing.set_message_listener(|_| async { Ok(()) }).unwrap();
    // Each message brings the next one, for ever.
    let sender = broker.session(Auto).await;
    let to = busy.clone();
    at_work
        .set_message_listener(move |_| {
            let (sender, to) = (sender.clone(), to.clone());
            async move {
                sender.send(&to, &corriere_core::Message::text("m"), &Default::default()).await?;
                Ok(())
            }
        })
        .unwrap();
    broker.send_numbered(&busy, 3).await;
    broker.until(&busy, |counts| counts.acknowledged > 10).await;
    within(closing.close()).await.unwrap();
    within(session.close()).await.unwrap();
}

#[tokio::test]
async fn a_listener_whose_message_cannot_be_settled_any_more_says_so_and_the_message_comes_again() {
    let (log, _guard) = crate::support::Log::capture();
    let broker = TestBroker::start();
    let q = queue("q");
    let connection = broker.connect().await;
    let session = connection.create_session(Auto).await.unwrap();
    let consumer = session.create_consumer(&q).await.unwrap();
    let stop = broker.broker.clone();
    consumer
        .set_message_listener(move |_| {
            stop.stop();
            async { Ok(()) }
        })
        .unwrap();
    broker.send_numbered(&q, 1).await;
    crate::support::eventually("the log", || {
        let lines = log.lines_with(&ProviderError::Lost.to_string());
        if lines > 0 { Ok(()) } else { Err("nothing".to_owned()) }
    })
    .await;
}

#[tokio::test]
async fn a_listener_with_a_backlog_lets_another_one_of_its_session_have_its_turn() {
    let broker = TestBroker::start();
    let (busy, idle) = (queue("busy"), queue("idle"));
    let session = broker.session(Auto).await;
    let busy_consumer = session.create_consumer(&busy).await.unwrap();
    let idle_consumer = session.create_consumer(&idle).await.unwrap();
    broker.send_numbered(&busy, 12).await;
    let handled = Arc::new(AtomicUsize::new(0));
    let (count, observer) = (Arc::clone(&handled), Arc::clone(&handled));
    let (tell, told) = tokio::sync::oneshot::channel();
    let tell = Mutex::new(Some(tell));
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    busy_consumer
        .set_message_listener(move |_| {
            let (count, opened) = (Arc::clone(&count), Arc::clone(&opened));
            async move {
                opened.acquire().await?.forget();
                count.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        })
        .unwrap();
    idle_consumer
        .set_message_listener(move |_| {
            if let Some(tell) = tell.lock().unwrap().take() {
                let _ = tell.send(observer.load(Ordering::Relaxed));
            }
            async { Ok(()) }
        })
        .unwrap();
    // The busy one is in its first handler, and the other one waits for its turn.
    others_run().await;
    broker.send(&idle, ["x"]).await;
    others_run().await;
    gate.add_permits(12);
    assert_eq!(within(told).await.unwrap(), 1, "handled before the other one had its turn");
    within(async {
        while handled.load(Ordering::Relaxed) < 12 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// C-10, its first part, in the modes beside CLIENT.
#[tokio::test]
async fn a_listener_that_recovers_on_every_delivery_gets_its_message_until_the_limit_and_never_hangs() {
    use corriere_core::AcknowledgeMode::{DupsOk, Individual};
    for mode in [Individual, Auto, DupsOk] {
        let mut settings = crate::support::settings();
        settings.redelivery.maximum_redeliveries = Some(6);
        let broker = TestBroker::with(settings);
        let q = queue("q");
        broker.send_numbered(&q, 1).await;
        let session = broker.session(mode).await;
        let consumer = session.create_consumer(&q).await.unwrap();
        let counts: Arc<Mutex<Vec<u32>>> = Arc::default();
        let (seen, own) = (Arc::clone(&counts), session.clone());
        consumer
            .set_message_listener(move |delivery| {
                seen.lock().unwrap().push(delivery.count());
                let own = own.clone();
                async move { Ok(own.recover().await?) }
            })
            .unwrap();
        broker.until(&q, |counts| counts.dead_lettered == 1).await;
        assert_eq!(*counts.lock().unwrap(), [1, 2, 3, 4, 5, 6, 7], "{mode:?}");
        consumer.close().await.unwrap();
    }
}

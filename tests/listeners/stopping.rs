//! The end of a container: what is under way, what hangs, and a listener that stops itself (C-41, C-42).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use corriere::containers::{ContainerState, EndKind, ListenerContainer};
use corriere::core::ConnectionFactory;
use corriere::prelude::*;
use tokio::sync::OnceCell;

use crate::support::{HANG, Log, World, in_time, until};

#[jms_listener(queue = "a", concurrency = "1")]
async fn at_the_gate(text: String, log: Bean<Log>) {
    log.add(&text);
    log.pass_gate().await;
    log.add("done");
}

/// C-41 (a) and (d).
#[tokio::test]
async fn a_stop_waits_for_the_run_that_is_under_way() {
    let world = World::new().await;
    let container = world.start(at_the_gate::DEF).await;
    world.send("a", "one").await;
    world.log.wait_for(1).await;
    let stop = tokio::spawn({
        let container = container.clone();
        async move { container.stop().await }
    });
    let again = tokio::spawn({
        let container = container.clone();
        async move { container.stop().await }
    });
    until("the stop has begun", || container.status().state == ContainerState::Stopping).await;
    world.log.gate.add_permits(1);
    assert!(in_time("the stop", stop).await.unwrap().is_clean());
    assert!(in_time("the second stop", again).await.unwrap().is_clean());
    assert!(in_time("a later stop", container.stop()).await.is_clean());
    assert_eq!(world.log.all(), ["one", "done"]);
    assert_eq!(world.ends.kinds(), [EndKind::Settled]);
    assert_eq!(world.counts("a").redelivered, 0);
    assert_eq!(container.status().workers, 0);
}

/// C-41 (c).
#[tokio::test]
async fn a_run_that_hangs_is_ended_at_the_deadline_and_named() {
    let world = World::new().await;
    let container = world
        .start_with(at_the_gate::DEF, |settings| settings.shutdown_timeout = Duration::from_millis(50))
        .await;
    world.send("a", "one").await;
    world.log.wait_for(1).await;
    let report = in_time("the stop", container.stop()).await;
    let [abandoned] = &report.abandoned[..] else { panic!("{report:?}") };
    assert_eq!((abandoned.listener.as_str(), abandoned.still_running), ("at_the_gate", false));
    assert!(abandoned.running_for >= Duration::from_millis(50));
    assert_eq!(abandoned.end, EndKind::Redelivered);
    assert!(abandoned.to_string().ends_with("was ended; the message was given back"), "{abandoned}");
    assert!(abandoned.message_id.starts_with("ID:"), "{abandoned}");
    assert_eq!(world.ends.wait_for(1).await[0].kind, EndKind::Redelivered);

    world.log.gate.add_permits(5);
    world.clock.advance(secs(2));
    assert_eq!(world.left_in("a").await, [("one".to_owned(), 2)]);
    assert_eq!(world.log.all(), ["one"], "it did not go on");
}

#[tokio::test]
async fn what_waits_behind_a_run_goes_to_others_as_soon_as_the_stop_begins() {
    let world = World::new().await;
    let container = world.start(at_the_gate::DEF).await;
    for text in ["one", "two", "three"] {
        world.send("a", text).await;
    }
    world.log.wait_for(1).await;
    let stop = tokio::spawn({
        let container = container.clone();
        async move { container.stop().await }
    });
    until("the buffered ones are back", || world.counts("a").in_flight == 1).await;
    assert_eq!(world.left_in("a").await, [("two".to_owned(), 1), ("three".to_owned(), 1)]);
    world.log.gate.add_permits(1);
    assert!(in_time("the stop", stop).await.unwrap().is_clean());
    assert_eq!(world.ends.kinds(), [EndKind::Settled]);
}

#[jms_listener(queue = "a")]
#[expect(clippy::needless_pass_by_value, reason = "a listener owns its arguments")]
fn blocks_for_ever(text: String, log: Bean<Log>) {
    log.add(&text);
    // Until the test opens the gate; a thread cannot be ended.
    tokio::runtime::Handle::current().block_on(log.pass_gate());
    log.add("done");
}

#[tokio::test]
async fn a_blocking_run_that_hangs_is_left_and_said_so_and_its_message_comes_again() {
    let world = World::new().await;
    let container = world
        .start_with(blocks_for_ever::DEF, |settings| settings.shutdown_timeout = Duration::from_millis(50))
        .await;
    world.send("a", "one").await;
    world.log.wait_for(1).await;
    let report = in_time("the stop", container.stop()).await;
    let [abandoned] = &report.abandoned[..] else { panic!("{report:?}") };
    assert!(abandoned.still_running, "{abandoned}");
    world.clock.advance(secs(2));
    assert_eq!(world.left_in("a").await, [("one".to_owned(), 2)]);
    world.log.gate.add_permits(1);
    assert_eq!(world.log.wait_for(2).await, ["one", "done"]);
    until("the connection of the container is gone", || world.counts("a").in_flight == 0).await;
}

static QUEUED_RUNS: AtomicUsize = AtomicUsize::new(0);

#[jms_listener(queue = "a")]
fn counts_its_runs(_text: String) {
    QUEUED_RUNS.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn a_blocking_run_that_waits_for_a_thread_never_begins_after_the_stop() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let world = World::new().await;
        let container = world
            .start_with(counts_its_runs::DEF, |settings| {
                settings.shutdown_timeout = Duration::from_millis(50);
            })
            .await;
        let (free, taken) = std::sync::mpsc::channel::<()>();
        let only_thread = tokio::task::spawn_blocking(move || taken.recv());
        world.send("a", "one").await;
        until("it waits for a thread", || container.status().busy == 1).await;
        let report = in_time("the stop", container.stop()).await;
        let [abandoned] = &report.abandoned[..] else { panic!("{report:?}") };
        assert!(!abandoned.still_running, "{abandoned}");

        free.send(()).unwrap();
        only_thread.await.unwrap().unwrap();
        // The thread takes one after the other, so the listener would have had its turn before this.
        tokio::task::spawn_blocking(|| {}).await.unwrap();
        assert_eq!(QUEUED_RUNS.load(Ordering::SeqCst), 0);
        world.clock.advance(secs(2));
        assert_eq!(world.left_in("a").await, [("one".to_owned(), 2)]);
    });
}

#[jms_listener(queue = "a", ack = "client")]
async fn settles_and_hangs(delivery: Delivery, log: Bean<Log>) -> Result<(), ListenerError> {
    delivery.acknowledge().await?;
    log.add("settled");
    log.pass_gate().await;
    Ok(())
}

#[tokio::test]
async fn a_message_that_was_settled_before_its_run_hung_is_not_said_to_come_again() {
    let world = World::new().await;
    let container =
        world.start_with(settles_and_hangs::DEF, |settings| settings.shutdown_timeout = Duration::ZERO).await;
    world.send("a", "one").await;
    world.log.wait_for(1).await;
    let report = in_time("the stop", container.stop()).await;
    let [abandoned] = &report.abandoned[..] else { panic!("{report:?}") };
    assert_eq!(abandoned.end, EndKind::FailedAfterSettling);
    assert!(abandoned.to_string().ends_with("was ended; it had settled the message itself"), "{abandoned}");
    assert_eq!(world.ends.kinds(), [EndKind::FailedAfterSettling]);
    assert_eq!(world.counts("a").pending, 0);
}

#[jms_listener(queue = "a", concurrency = "6-6")]
async fn at_the_gate_in_a_crowd(text: String, log: Bean<Log>) {
    log.add(&text);
    log.pass_gate().await;
}

#[tokio::test]
async fn many_messages_are_given_back_together_and_not_one_after_the_other() {
    // The broker confirms six at once. In turn, the first would wait in vain for the others.
    for (messages, end) in [(6, EndKind::Redelivered), (5, EndKind::Unsettled)] {
        let world = World::new().await;
        let factory = ConnectionFactory::from_url(&format!("gathering://{}", world.broker.name())).unwrap();
        let container = world
            .start_with(at_the_gate_in_a_crowd::DEF, |settings| {
                settings.factory = factory;
                settings.shutdown_timeout = Duration::from_millis(10);
            })
            .await;
        for number in 0..messages {
            world.send("a", &format!("m{number}")).await;
        }
        world.log.wait_for(messages).await;
        let report = in_time("the stop", container.stop()).await;
        assert_eq!(report.abandoned.len(), messages);
        for abandoned in &report.abandoned {
            assert_eq!(abandoned.end, end, "{abandoned}");
        }
    }
}

/// The container that a listener of this test stops.
#[derive(Debug, Default)]
struct Own(OnceCell<ListenerContainer>);

async fn own(own: &Own) -> ListenerContainer {
    loop {
        if let Some(container) = own.0.get() {
            return container.clone();
        }
        tokio::task::yield_now().await;
    }
}

#[jms_listener(queue = "a", concurrency = "2-2")]
async fn stops_itself(text: String, container: Bean<Own>, log: Bean<Log>) {
    if text == "neighbour" {
        log.add("neighbour began");
        log.pass_gate().await;
        log.add("neighbour done");
        return;
    }
    let report = own(&container).await.stop().await;
    log.add(format!("deferred: {}", report.deferred));
}

#[jms_listener(queue = "a")]
#[expect(clippy::needless_pass_by_value, reason = "a listener owns its arguments")]
fn stops_itself_blocking(_text: String, container: Bean<Own>, log: Bean<Log>) {
    let stop = async { own(&container).await.stop().await };
    let report = tokio::runtime::Handle::current().block_on(stop);
    log.add(format!("deferred: {}", report.deferred));
}

async fn start_with_itself(world: &World, listener: corriere::listener::ListenerDef) -> ListenerContainer {
    let own = Bean::new(Own::default());
    let container = world
        .start_with(listener, |settings| {
            let mut beans = corriere::Beans::new();
            beans.add("log", world.log.clone()).unwrap();
            beans.add("own", own.clone()).unwrap();
            settings.beans = beans.into();
        })
        .await;
    own.0.set(container.clone()).unwrap();
    container
}

#[tokio::test]
async fn a_listener_that_stops_its_own_container_does_not_wait_for_itself() {
    for listener in [stops_itself::DEF, stops_itself_blocking::DEF] {
        let world = World::new().await;
        let container = start_with_itself(&world, listener).await;
        world.send("a", "one").await;
        assert_eq!(world.log.wait_for(1).await, ["deferred: true"], "{}", listener.id);
        assert!(in_time("the stop", container.stop()).await.is_clean());
        assert_eq!(world.ends.kinds(), [EndKind::Settled], "{}: its message is settled", listener.id);
        world.until_empty("a").await;
        assert_eq!(container.status().workers, 0);
    }
}

#[tokio::test]
async fn a_neighbour_finishes_when_a_listener_stops_the_container() {
    let world = World::new().await;
    let container = start_with_itself(&world, stops_itself::DEF).await;
    world.send("a", "neighbour").await;
    world.log.wait_for(1).await;
    world.send("a", "one").await;
    world.log.wait_for(2).await;
    world.log.gate.add_permits(1);
    assert!(in_time("the stop", container.stop()).await.is_clean());
    assert_eq!(world.log.all(), ["neighbour began", "deferred: true", "neighbour done"]);
    assert_eq!(world.ends.kinds(), [EndKind::Settled; 2]);
}

#[jms_listener(queue = "a", ack = "client")]
async fn closes_its_session(text: String, session: Session, log: Bean<Log>) -> Result<(), ListenerError> {
    match text.as_str() {
        "session" => session.close().await?,
        "connection" => session.connection().close().await?,
        _ => {}
    }
    log.add(text);
    Ok(())
}

#[tokio::test]
async fn a_listener_may_close_its_session_or_connection_and_the_container_goes_on() {
    let world = World::new().await;
    let container = world.start(closes_its_session::DEF).await;
    for text in ["session", "connection", "nothing"] {
        world.send("a", text).await;
    }
    world.ends.wait_for(3).await;
    assert_eq!(world.log.all(), ["session", "connection", "nothing"]);
    assert_eq!(world.ends.kinds(), [EndKind::Settled; 3]);
    world.until_empty("a").await;
    assert_eq!(world.counts("a").redelivered, 0);
    assert_eq!(container.status().workers, 1);
}

#[tokio::test]
async fn dropping_the_last_handle_stops_the_container_after_its_run() {
    let world = World::new().await;
    let container = world.start(at_the_gate::DEF).await;
    world.send("a", "one").await;
    world.log.wait_for(1).await;
    drop(container);
    world.send("a", "two").await;
    world.log.gate.add_permits(2);
    world.ends.wait_for(1).await;
    assert_eq!(world.left_in("a").await, [("two".to_owned(), 1)]);
    assert_eq!(world.log.all(), ["one", "done"]);
}

#[tokio::test]
async fn a_broker_that_is_stopped_under_a_busy_listener_ends_nothing_else() {
    let world = World::new().await;
    let container = world.start(at_the_gate::DEF).await;
    world.send("a", "one").await;
    world.log.wait_for(1).await;
    world.broker.stop();
    world.log.gate.add_permits(1);
    let ends = world.ends.wait_for(1).await;
    assert_eq!(ends[0].kind, EndKind::Unsettled, "the end could not be told to anybody");
    assert!(ends[0].failure.is_some());
    let stopped = tokio::time::timeout(HANG, container.stop()).await.unwrap();
    assert!(stopped.is_clean());
}

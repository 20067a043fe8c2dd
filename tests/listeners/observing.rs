//! What is said of deliveries while they happen: spans and ends.

use corriere::containers::EndKind;
use corriere::core::with_session;
use corriere::prelude::*;
use corriere_tests::lines::Lines;
use tracing::Level;

use crate::support::{World, json, until};

#[jms_listener(queue = "observed")]
async fn on_observed(text: String) -> Result<(), ListenerError> {
    match text.as_str() {
        "panic" => panic!("oh"),
        "bad" => Err(ListenerError::dead_letter("no")),
        _ => Ok(()),
    }
}

#[tokio::test]
async fn a_failed_run_is_recorded_as_failed_in_its_span() {
    let lines = Lines::of_the_process(Level::INFO);
    let world = World::new().await;
    let _container = world.start(on_observed::DEF).await;
    let mut message = json("good");
    message.headers_mut().correlation_id = Some("conversation".into());
    message.set_property("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
    world.send_message("observed", &message).await;
    world.send("observed", "bad").await;
    world.send("observed", "panic").await;
    world.ends.wait_for(3).await;
    let closed = || lines.with(&["process{", "name=\"observed\"", "close"]);
    until("three spans are closed", || closed().len() == 3).await;
    let [good, bad, panicked] = &closed()[..] else { unreachable!() };
    for expected in [
        "messaging.system=\"corriere\"",
        "messaging.operation.type=\"process\"",
        "messaging.destination.name=\"observed\"",
        "messaging.message.id=ID:",
        "messaging.message.conversation_id=\"conversation\"",
        "traceparent=\"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\"",
        "messaging.outcome=Settled",
    ] {
        assert!(good.contains(expected), "{expected} is missing in {good}");
    }
    assert!(!good.contains("ERROR"), "{good}");
    for (span, kind, outcome) in [(bad, "listener_error", "DeadLettered"), (panicked, "panic", "Redelivered")]
    {
        assert!(span.contains("otel.status_code=\"ERROR\""), "{span}");
        assert!(span.contains(&format!("error.type=\"{kind}\"")), "{span}");
        assert!(span.contains(&format!("messaging.outcome={outcome}")), "{span}");
    }
}

#[jms_listener(queue = "told")]
async fn on_told() -> Result<(), ListenerError> {
    Err(ListenerError::dead_letter("no"))
}

#[tokio::test]
async fn the_observer_is_told_after_the_message_has_found_its_end() {
    let world = World::new().await;
    let _container = world.start(on_told::DEF).await;
    world.send("told", "bad").await;
    let ends = world.ends.wait_for(1).await;
    assert_eq!(world.counts("DLQ.told").pending, 1, "no waiting is needed after that");
    let end = &ends[0];
    assert_eq!((end.listener, end.delivery_count, end.kind), ("on_told", 1, EndKind::DeadLettered));
    assert_eq!(end.failure.as_deref(), Some("no"));
    assert!(end.message_id.is_some() && !end.panicked);
}

#[jms_listener(queue = "spawning", ack = "transacted")]
async fn sends_from_a_task(
    how: String,
    template: Bean<JmsTemplate>,
    session: Session,
) -> Result<(), ListenerError> {
    let of_task = template.clone();
    let send = async move { of_task.convert_and_send("sent").await };
    let sent = match how.as_str() {
        "bare" => tokio::spawn(send).await,
        "carried" => tokio::spawn(with_session(session, send)).await,
        _ => Ok(template.detached().convert_and_send("sent").await),
    };
    sent??;
    Err(ListenerError::dead_letter("no"))
}

#[tokio::test]
async fn a_task_that_a_transacted_listener_spawned_sends_by_itself_with_a_warning_and_joins_within_with_session()
 {
    let lines = Lines::of_the_process(Level::INFO);
    for (how, warnings, sent) in [("bare", 1, 1), ("carried", 0, 0), ("detached", 0, 1)] {
        let world = World::new().await;
        let template =
            JmsTemplate::builder(world.factory.clone()).default_destination("out").build().unwrap();
        let _container = world
            .start_with(sends_from_a_task::DEF, |settings| {
                let mut beans = corriere::Beans::new();
                beans.add("template", Bean::new(template)).unwrap();
                settings.beans = beans.into();
            })
            .await;
        world.send("spawning", how).await;
        world.ends.wait_for(1).await;
        assert_eq!(world.left_in("out").await.len(), sent, "{how}");
        let warned = lines.with(&["outside of its run", world.factory.url()]);
        assert_eq!(warned.len(), warnings, "{how}: {warned:?}");
    }
}

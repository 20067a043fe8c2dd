//! Templates within a transacted handler: what they send and receive goes the way of what the handler received.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use corriere::broker::Broker;
use corriere::core::Destination;
use corriere::listener::ListenerDef;
use corriere::prelude::*;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::application;

const HANG: Duration = Duration::from_secs(120);

/// Two factories for one broker, and a template on each.
const CONFIG: &str = r#"
    [broker]
    [broker.redelivery]
    maximum_redeliveries = 2
    initial_delay = "0s"
    delay = "0s"
    [connection_factories.main]
    url = "vm://${broker.name}"
    [connection_factories.other]
    url = "vm://${broker.name}"
    [templates.joined]
    connection_factory = "main"
    [templates.apart]
    connection_factory = "other"
    [listener_containers.default]
    connection_factory = "main"
"#;

/// A look at what others can see, for handlers.
#[derive(Clone, Debug, Default)]
struct Looks {
    broker: Arc<OnceLock<Broker>>,
    /// What was seen when each delivery began.
    seen: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl Looks {
    fn enqueued(&self, name: &str) -> u64 {
        let broker = self.broker.get().expect("messages are sent when the broker is known");
        broker.counts(&Destination::queue(name).unwrap()).unwrap_or_default().enqueued
    }

    fn look(&self) {
        let now = (self.enqueued("audit"), self.enqueued("replies"));
        self.seen.lock().unwrap().push(now);
    }
}

#[jms_listener(queue = "q", ack = "transacted")]
async fn joins(
    text: String,
    message: Message,
    delivery: Delivery,
    joined: Bean<JmsTemplate>,
    looks: Bean<Looks>,
) -> Result<(), ListenerError> {
    looks.look();
    send_and_fail(&text, &message, &delivery, &joined).await
}

#[jms_listener(queue = "q", ack = "transacted")]
async fn stays_apart(
    text: String,
    message: Message,
    delivery: Delivery,
    apart: Bean<JmsTemplate>,
    looks: Bean<Looks>,
) -> Result<(), ListenerError> {
    looks.look();
    send_and_fail(&text, &message, &delivery, &apart).await
}

#[jms_listener(queue = "q", ack = "transacted")]
async fn detaches(
    text: String,
    message: Message,
    delivery: Delivery,
    joined: Bean<JmsTemplate>,
    looks: Bean<Looks>,
) -> Result<(), ListenerError> {
    looks.look();
    send_and_fail(&text, &message, &delivery, &joined.detached()).await
}

/// Sends to `audit` and to the address for replies, and succeeds with the third delivery of what is no poison.
async fn send_and_fail(
    text: &str,
    message: &Message,
    delivery: &Delivery,
    template: &JmsTemplate,
) -> Result<(), ListenerError> {
    template.convert_and_send_to("audit", text).await.or_redeliver()?;
    let reply_to =
        message.headers().reply_to.clone().ok_or_else(|| ListenerError::dead_letter("no address"))?;
    template.convert_and_send_to(reply_to, text).await.or_redeliver()?;
    if text == "poison" || delivery.count() < 3 { Err(ListenerError::redeliver("not yet")) } else { Ok(()) }
}

/// Settles one message by a listener, and returns the looks at `audit` and `replies` at the begin of each delivery and in the
/// end, and how many are among the dead letters.
async fn play(listener: ListenerDef, text: &str) -> (Vec<(u64, u64)>, u64) {
    let looks = Looks::default();
    let app = application(CONFIG)
        .set("broker.name", format!("{}-{text}", listener.id))
        .named_bean("looks", looks.clone())
        .listeners([listener])
        .start()
        .await
        .unwrap();
    let broker = app.broker().unwrap().clone();
    looks.broker.set(broker.clone()).unwrap();
    let template: JmsTemplate = app.bean("apart").unwrap();
    template.to("q").reply_to("replies").convert_and_send(text).await.unwrap();
    let q = Destination::queue("q").unwrap();
    let settled = async {
        while broker.counts(&q).is_none_or(|counts| counts.pending > 0) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(HANG, settled).await.unwrap_or_else(|_| panic!("{}: {text} is never settled", listener.id));
    looks.look();
    let dead = broker.counts(&Destination::queue("DLQ.q").unwrap()).map_or(0, |counts| counts.moved_in);
    app.stop().await;
    let seen = looks.seen.lock().unwrap().clone();
    (seen, dead)
}

/// C-14 and Spring 1.
#[tokio::test]
async fn what_a_joined_template_sends_is_visible_once_and_only_when_the_handler_succeeds() {
    let (seen, dead) = play(joins::DEF, "third-time").await;
    assert_eq!((seen.as_slice(), dead), (&[(0, 0), (0, 0), (0, 0), (1, 1)][..], 0));
}

/// C-14 and Spring 1: in the usual wiring of Spring Boot, a stray message is out for each delivery.
#[tokio::test]
async fn what_a_joined_template_sends_is_never_visible_when_the_handler_fails_to_the_dead_letters() {
    let (seen, dead) = play(joins::DEF, "poison").await;
    assert_eq!((seen.as_slice(), dead), (&[(0, 0); 4][..], 1));
}

/// C-14, a template of its own: by decision 13 another factory is independent, and so is a detached template.
#[tokio::test]
async fn what_a_template_apart_sends_is_visible_at_once_and_for_each_delivery() {
    for listener in [stays_apart::DEF, detaches::DEF] {
        let (seen, dead) = play(listener, "third-time").await;
        let expected = [(0, 0), (1, 1), (2, 2), (3, 3)];
        assert_eq!((seen.as_slice(), dead), (&expected[..], 0), "{}", listener.id);
    }
}

#[jms_listener(queue = "ending", ack = "transacted")]
async fn commits_by_itself(
    text: String,
    session: Session,
    any: Bean<JmsTemplate>,
    delivery: Delivery,
) -> Result<(), ListenerError> {
    any.convert_and_send_to("before", &text).await.or_redeliver()?;
    session.commit().await?;
    any.convert_and_send_to("after", &text).await.or_redeliver()?;
    if text == "fails" && delivery.count() == 1 {
        Err(ListenerError::redeliver("after the commit"))
    } else {
        Ok(())
    }
}

/// Spring 8: what is sent after a commit belongs to what comes next, and does not vanish.
#[corriere::test]
async fn what_is_sent_after_a_commit_within_a_handler_is_committed_with_its_success(app: TestApp) {
    let app = app.config("[templates.any]").listeners([commits_by_itself::DEF]).start().await;
    app.send("ending", "succeeds").await;
    app.settled(commits_by_itself::DEF).await.failed().times(0);
    assert_eq!(app.take_one::<String>("before").await, "succeeds");
    assert_eq!(app.take_one::<String>("after").await, "succeeds");
    app.send("ending", "fails").await;
    app.settled(commits_by_itself::DEF).await.failed().times(1);
    assert_eq!(app.take_one::<String>("before").await, "fails", "what was committed stays");
    app.is_empty("after").is_empty("ending");
}

#[derive(Clone, Debug, Default)]
struct Begun(Arc<Notify>);

#[jms_listener(queue = "patient", ack = "transacted")]
async fn waits_for_ever(
    _text: String,
    endless: Bean<JmsTemplate>,
    begun: Bean<Begun>,
) -> Result<(), ListenerError> {
    begun.0.notify_one();
    endless.receive_from("never").await.or_redeliver()?;
    Ok(())
}

/// Spring 15, where the deadline is that of a stop: Spring's receive without end blocks for ever.
#[corriere::test]
async fn a_handler_that_waits_for_ever_for_a_message_is_ended_by_the_deadline_of_a_stop(app: TestApp) {
    let begun = Begun::default();
    let text = "[templates.endless]\nreceive_timeout = 0\n[listener_containers.default]\nshutdown_timeout = \"50ms\"";
    let app = app.config(text).bean(begun.clone()).listeners([waits_for_ever::DEF]).start().await;
    app.send("patient", "one").await;
    timeout(HANG, begun.0.notified()).await.unwrap();
    let container = app.application().container("waits_for_ever").unwrap().clone();
    let report = timeout(HANG, container.stop()).await.unwrap();
    assert_eq!(report.abandoned.len(), 1);
    app.advance(Duration::from_secs(1));
    assert_eq!(app.take_message("patient").await.headers().delivery_count, 2, "it comes again");
}

/// What a listener fails with.
#[derive(Clone, Debug, Default)]
struct Reason(Arc<Mutex<String>>);

#[jms_listener(queue = "orders")]
async fn fails_for_a_reason(_text: String, reason: Bean<Reason>) -> Result<(), ListenerError> {
    Err(ListenerError::redeliver(reason.0.lock().unwrap().clone()))
}

/// C-22, where a container caught the errors.
#[corriere::test]
async fn a_dead_letter_of_a_listener_that_is_sent_again_dies_of_its_new_cause(app: TestApp) {
    let reason = Reason::default();
    "E1".clone_into(&mut reason.0.lock().unwrap());
    let app = app.set("broker.redelivery.maximum_redeliveries", 2).bean(reason.clone());
    let app = app.listeners([fails_for_a_reason::DEF]).start().await;
    app.send("orders", "one").await;
    let mut ids = Vec::new();
    for cause in ["E1", "E2"] {
        for failed in 1..=3 {
            app.settled(fails_for_a_reason::DEF).await;
            if failed < 3 {
                app.advance(Duration::from_secs(1));
            }
        }
        let letter = app.dead_letters("orders").await.remove(0);
        let property = |name| letter.property::<String>(name).unwrap().unwrap_or_default();
        assert_eq!(property("dlqDeliveryFailureCause"), cause);
        assert_eq!(property("dlqOriginalDestination"), "queue://orders");
        assert_eq!(property("dlqListener"), "fails_for_a_reason");
        assert_eq!(property("JMSXDeliveryCount"), "3");
        ids.push(letter.headers().message_id.clone());
        if cause == "E1" {
            "E2".clone_into(&mut reason.0.lock().unwrap());
            app.send_message("orders", &letter).await;
        }
    }
    assert_ne!(ids[0], ids[1], "it was sent anew");
}

//! How listeners fail, and what becomes of the message.

use corriere::containers::EndKind;
use corriere::prelude::*;

use crate::support::{Log, World, json, text_of, text_property};

#[derive(Debug)]
struct NoStock;

impl std::fmt::Display for NoStock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no stock")
    }
}

impl std::error::Error for NoStock {}

#[derive(Debug)]
struct Refused(NoStock);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the order was refused")
    }
}

impl std::error::Error for Refused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[jms_listener(queue = "orders")]
async fn on_order(how: String, log: Bean<Log>) -> Result<(), ListenerError> {
    log.add(&how);
    match how.as_str() {
        "dead letter" => Err(Refused(NoStock)).or_dead_letter()?,
        "retry" => Err(NoStock).or_retry_after(secs(60))?,
        "discard" => Err(NoStock).or_discard()?,
        "plain" => Err(NoStock)?,
        "panic" => panic!("at the disco"),
        _ => {}
    }
    Ok(())
}

#[tokio::test]
async fn a_dead_letter_says_who_failed_with_it_and_why() {
    let world = World::new().await;
    let _container = world.start(on_order::DEF).await;
    world.send("orders", "dead letter").await;
    assert_eq!(world.ends.wait_for(1).await[0].kind, EndKind::DeadLettered);

    let dead = world.drain("DLQ.orders").await;
    let properties = dead[0].properties();
    assert_eq!(text_of(&dead[0]), "dead letter");
    assert_eq!(text_property(properties, "dlqDeliveryFailureCause"), "the order was refused: no stock");
    assert_eq!(text_property(properties, "dlqListener"), "on_order");
    assert_eq!(text_property(properties, "dlqOriginalDestination"), "queue://orders");
    assert_eq!(world.log.all().len(), 1, "at once, without another delivery");
}

#[tokio::test]
async fn a_retry_waits_for_its_own_delay() {
    let world = World::new().await;
    let _container = world.start(on_order::DEF).await;
    world.send("orders", "retry").await;
    world.ends.wait_for(1).await;
    world.clock.advance(secs(59));
    // Another message shows that the listener would have run by now.
    world.send("orders", "good").await;
    assert_eq!(world.log.all(), ["retry"], "nothing overtakes it either");
    world.clock.advance(secs(1));
    assert_eq!(world.log.wait_for(2).await[1], "retry");
    assert_eq!(world.ends.wait_for(2).await[1].delivery_count, 2, "it counts like any failure");
}

#[tokio::test]
async fn a_discarded_message_is_gone() {
    let world = World::new().await;
    let container = world.start(on_order::DEF).await;
    world.send("orders", "discard").await;
    assert_eq!(world.ends.wait_for(1).await[0].kind, EndKind::Discarded);
    world.until_empty("orders").await;
    assert_eq!(world.counts("DLQ.orders").pending, 0);
    assert_eq!(container.status().failed, 1, "and yet recorded as failed");
}

#[tokio::test]
async fn a_plain_error_is_redelivered_until_the_limit_and_then_dead() {
    for how in ["plain", "panic"] {
        let world = World::new().await;
        let container = world.start(on_order::DEF).await;
        world.send("orders", how).await;
        world.ends.wait_for(1).await;
        world.pass_delays_until(7).await;
        world.until_empty("orders").await;
        let dead = world.drain("DLQ.orders").await;
        assert_eq!(dead[0].property::<i32>("JMSXDeliveryCount"), Ok(Some(7)), "{how}");
        let cause = text_property(dead[0].properties(), "dlqDeliveryFailureCause");
        assert!(
            cause.contains(if how == "panic" { "panicked: at the disco" } else { "no stock" }),
            "{cause}"
        );
        let status = container.status();
        assert_eq!((status.failed, status.panicked), (7, if how == "panic" { 7 } else { 0 }));
    }
}

#[tokio::test]
async fn a_listener_goes_on_after_a_panic() {
    let world = World::new().await;
    let container = world.start(on_order::DEF).await;
    world.send("orders", "panic").await;
    world.ends.wait_for(1).await;
    world.send("orders", "good").await;
    world.clock.advance(secs(2));
    world.ends.wait_for(2).await;
    assert_eq!(container.status().workers, 1);
    // The first one is still in its row of redeliveries, and the second comes after it.
    world.pass_delays_until(7).await;
    world.ends.wait_for(8).await;
    assert_eq!(world.log.all().last().unwrap(), "good");
}

#[jms_listener(queue = "greedy", ack = "transacted")]
async fn takes_another_with_it(how: String, template: Bean<JmsTemplate>) -> Result<(), ListenerError> {
    let other = template.receive_from("innocent").await.or_redeliver()?;
    assert!(other.is_some());
    match how.as_str() {
        "discard" => Err(NoStock).or_discard(),
        _ => Err(NoStock).or_dead_letter(),
    }
}

#[tokio::test]
async fn what_a_template_received_in_the_same_transaction_does_not_share_the_end_of_a_bad_message() {
    for (how, kind) in [("discard", EndKind::Discarded), ("dead letter", EndKind::DeadLettered)] {
        let world = World::new().await;
        let template = JmsTemplate::builder(world.factory.clone())
            .receive_timeout(ReceiveTimeout::NoWait)
            .build()
            .unwrap();
        let _container = world
            .start_with(takes_another_with_it::DEF, |settings| {
                let mut beans = corriere::Beans::new();
                beans.add("template", Bean::new(template)).unwrap();
                settings.beans = beans.into();
            })
            .await;
        world.send("innocent", "precious").await;
        world.send("greedy", how).await;
        assert_eq!(world.ends.wait_for(1).await[0].kind, kind);
        world.until_empty("greedy").await;
        world.clock.advance(secs(2));
        assert_eq!(world.left_in("innocent").await, [("precious".to_owned(), 2)], "{how}");
    }
}

#[jms_listener(queue = "numbers")]
async fn on_number(number: u64, log: Bean<Log>) {
    log.add(number.to_string());
}

/// C-05: one unconvertible message took its neighbours with it.
#[tokio::test]
async fn a_body_that_cannot_be_read_is_dead_at_once_and_alone() {
    let world = World::new().await;
    let container = world.start(on_number::DEF).await;
    world.send_message("numbers", &Message::text("1")).await;
    world.send("numbers", "two").await;
    world.send_message("numbers", &Message::text("{")).await;
    world.send_message("numbers", &Message::text("4")).await;
    world.ends.wait_for(4).await;
    assert_eq!(world.log.all(), ["1", "4"]);
    use EndKind::{DeadLettered, Settled};
    assert_eq!(world.ends.kinds(), [Settled, DeadLettered, DeadLettered, Settled]);
    assert_eq!(world.counts("numbers").redelivered, 0);
    let dead = world.drain("DLQ.numbers").await;
    assert_eq!(dead.len(), 2);
    assert_eq!(text_property(dead[0].properties(), "dlqListener"), "on_number");
    assert_eq!(container.status().failed, 2);
}

header! { Tenant = "tenant": String; Attempt = "attempt": i32 }

#[jms_listener(queue = "headers")]
async fn on_headers(tenant: Header<Tenant>, attempt: Option<Header<Attempt>>, log: Bean<Log>) {
    log.add(format!("{} {:?}", *tenant, attempt.map(Header::into_inner)));
}

#[tokio::test]
async fn a_missing_or_mistyped_header_is_dead_at_once() {
    let world = World::new().await;
    let _container = world.start(on_headers::DEF).await;
    let mut message = json("x");
    world.send_message("headers", &message).await;
    message.set_property("tenant", "acme").unwrap();
    world.send_message("headers", &message).await;
    message.set_property("attempt", "3").unwrap();
    world.send_message("headers", &message).await;
    message.set_property("attempt", "three").unwrap();
    world.send_message("headers", &message).await;
    world.ends.wait_for(4).await;
    assert_eq!(world.log.all(), ["acme None", "acme Some(3)"]);
    let dead = world.drain("DLQ.headers").await;
    let causes: Vec<_> =
        dead.iter().map(|dead| text_property(dead.properties(), "dlqDeliveryFailureCause")).collect();
    assert!(causes[0].contains("no property `tenant`"), "{causes:?}");
    assert!(causes[1].contains("`attempt`") && causes[1].contains("three"), "{causes:?}");
}

#[jms_listener(queue = "empty")]
async fn on_empty(order: Option<u64>, log: Bean<Log>) {
    log.add(format!("{order:?}"));
}

#[tokio::test]
async fn an_optional_payload_is_none_without_a_body() {
    let world = World::new().await;
    let _container = world.start(on_empty::DEF).await;
    for message in [
        Message::new(corriere::core::Body::Empty),
        Message::new(corriere::core::Body::Text(None)),
        Message::text(""),
        Message::bytes(Vec::new()),
        Message::text("7"),
    ] {
        world.send_message("empty", &message).await;
    }
    world.ends.wait_for(5).await;
    assert_eq!(world.log.all(), ["None", "None", "None", "None", "Some(7)"]);
}

#[jms_listener(queue = "blocking")]
#[expect(clippy::needless_pass_by_value, reason = "a listener owns its arguments")]
fn on_blocking(how: String, log: Bean<Log>, delivery: Delivery) -> Result<(), ListenerError> {
    log.add(format!("{how} {}", delivery.count()));
    match how.as_str() {
        "panic" if delivery.count() == 1 => panic!("while it blocks"),
        "error" if delivery.count() == 1 => Err(NoStock)?,
        _ => Ok(()),
    }
}

#[tokio::test]
async fn a_blocking_listener_fails_like_any_other() {
    let world = World::new().await;
    let container = world.start(on_blocking::DEF).await;
    world.send("blocking", "panic").await;
    world.ends.wait_for(1).await;
    world.clock.advance(secs(2));
    world.ends.wait_for(2).await;
    world.send("blocking", "error").await;
    world.ends.wait_for(3).await;
    world.clock.advance(secs(2));
    let ends = world.ends.wait_for(4).await;
    assert!(ends[0].panicked && ends[0].failure.as_ref().unwrap().contains("while it blocks"));
    assert_eq!(world.log.all(), ["panic 1", "panic 2", "error 1", "error 2"]);
    world.until_empty("blocking").await;
    assert_eq!(container.status().panicked, 1);
}

struct Extracted;

impl FromDelivery for Extracted {
    async fn from_delivery(invocation: &mut Invocation) -> Result<Self, ListenerError> {
        assert!(invocation.delivery().count() > 1, "in the making of an argument");
        Ok(Self)
    }
}

#[jms_listener(queue = "extracted")]
async fn on_extracted(_argument: Extracted) {}

struct Bomb {
    armed: bool,
}

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.armed, "in a drop");
    }
}

#[jms_listener(queue = "dropped")]
async fn on_dropped(delivery: Delivery) {
    let _bomb = Bomb { armed: delivery.count() == 1 };
}

#[tokio::test]
async fn a_panic_in_an_argument_or_in_a_drop_is_caught_too() {
    for listener in [on_extracted::DEF, on_dropped::DEF] {
        let world = World::new().await;
        let container = world.start(listener).await;
        let name = listener.destination.name();
        world.send(name, "x").await;
        assert!(world.ends.wait_for(1).await[0].panicked);
        world.pass_delays_until(2).await;
        world.until_empty(name).await;
        assert_eq!(world.ends.kinds(), [EndKind::Redelivered, EndKind::Settled]);
        assert_eq!(container.status().workers, 1);
    }
}

/// An error that panics when it is shown, or else when it is dropped.
#[derive(Debug)]
struct Unruly {
    when_shown: bool,
}

impl std::fmt::Display for Unruly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        assert!(!self.when_shown, "in the showing");
        f.write_str("unruly")
    }
}

impl std::error::Error for Unruly {}

impl Drop for Unruly {
    fn drop(&mut self) {
        assert!(self.when_shown, "in the drop");
    }
}

#[jms_listener(queue = "unruly")]
async fn on_unruly(when: String) -> Result<(), Unruly> {
    Err(Unruly { when_shown: when == "shown" })
}

#[tokio::test]
async fn an_error_that_panics_itself_harms_no_worker() {
    for (when, expected) in [("shown", "panicked while it was shown: in the showing"), ("dropped", "unruly")]
    {
        let world = World::new().await;
        let container = world.start(on_unruly::DEF).await;
        world.send("unruly", when).await;
        let ends = world.ends.wait_for(1).await;
        assert_eq!((ends[0].kind, ends[0].panicked), (EndKind::Redelivered, true), "{when}");
        let failure = ends[0].failure.as_deref().unwrap();
        assert!(failure.contains(expected), "{failure}");
        world.pass_delays_until(7).await;
        world.until_empty("unruly").await;
        assert_eq!(world.counts("DLQ.unruly").pending, 1, "{when}");
        assert_eq!(container.status().workers, 1, "{when}");
    }
}

#[jms_listener(queue = "careless", ack = "client")]
async fn on_careless(message: Message, delivery: Delivery, session: Session) {
    drop(delivery);
    drop(session);
    drop(message);
    tokio::task::yield_now().await;
}

#[tokio::test]
async fn a_listener_that_drops_its_arguments_is_still_settled() {
    let world = World::new().await;
    let container = world.start(on_careless::DEF).await;
    for text in ["one", "two", "three"] {
        world.send("careless", text).await;
    }
    world.ends.wait_for(3).await;
    assert_eq!(world.ends.kinds(), [EndKind::Settled; 3]);
    world.until_empty("careless").await;
    assert_eq!(container.status().workers, 1);
}

#[tokio::test]
async fn a_bean_that_is_not_there_stops_the_start() {
    let world = World::new().await;
    let mut settings = world.settings(&on_order::DEF);
    settings.beans = corriere::Beans::new().into();
    let refused = corriere::containers::ListenerContainer::start(on_order::DEF, settings).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("`on_order`") && text.contains("Log"), "{text}");
}

#[derive(Debug)]
struct Panics;

impl corriere::containers::DeliveryObserver for Panics {
    fn ended(&self, _end: &corriere::containers::DeliveryEnd) {
        panic!("in the observer");
    }
}

#[tokio::test]
async fn an_observer_that_panics_harms_no_worker() {
    let world = World::new().await;
    let container = world
        .start_with(on_order::DEF, |settings| settings.observer = Some(std::sync::Arc::new(Panics)))
        .await;
    world.send("orders", "one").await;
    world.send("orders", "two").await;
    world.log.wait_for(2).await;
    world.until_empty("orders").await;
    assert_eq!(container.status().handled, 2);
    assert_eq!(container.stop().await.abandoned, []);
}

//! Replies, and what a failing listener had sent.

use corriere::containers::EndKind;
use corriere::core::{ConnectionFactory, RedeliveryPolicy, SendOptions};
use corriere::prelude::*;

use crate::support::{Log, World, json, queue};

#[jms_listener(queue = "requests", send_to = "answers")]
async fn echo(text: String) -> Option<String> {
    (text != "quiet").then_some(text)
}

#[jms_listener(queue = "requests")]
async fn echo_to_nobody(text: String) -> String {
    text
}

#[jms_listener(queue = "requests", send_to = "answers")]
async fn with_its_own(text: String) -> Result<Reply<String>, ListenerError> {
    Ok(Reply::new(text).correlation_id("mine").message_type("answer").property("lucky", 7))
}

#[tokio::test]
async fn a_reply_goes_to_the_address_of_the_request_and_else_to_send_to() {
    let world = World::new().await;
    let _container = world.start(echo::DEF).await;
    let mut request = json("addressed");
    request.headers_mut().reply_to = Some(queue("mine"));
    world.send_message("requests", &request).await;
    world.send("requests", "plain").await;
    world.send("requests", "quiet").await;
    world.ends.wait_for(3).await;
    assert_eq!(world.left_in("mine").await, [("addressed".to_owned(), 1)]);
    assert_eq!(world.left_in("answers").await, [("plain".to_owned(), 1)]);
    assert_eq!(world.ends.kinds(), [EndKind::Settled; 3]);
}

#[tokio::test]
async fn a_reply_is_correlated_with_the_request_unless_the_listener_says_otherwise() {
    let world = World::new().await;
    let container = world.start(echo::DEF).await;
    let mut request = json("with id");
    request.headers_mut().correlation_id = Some("o'clock".into());
    world.send_message("requests", &request).await;
    let id = world.session.send(&queue("requests"), &json("without"), &SendOptions::default()).await.unwrap();
    world.ends.wait_for(2).await;
    let answers = world.drain("answers").await;
    assert_eq!(answers[0].headers().correlation_id.as_deref(), Some("o'clock"));
    assert_eq!(answers[1].headers().correlation_id.as_deref(), Some(id.to_string().as_str()));
    container.stop().await;

    let _container = world.start(with_its_own::DEF).await;
    world.send_message("requests", &request).await;
    world.ends.wait_for(3).await;
    let answers = world.drain("answers").await;
    assert_eq!(answers[0].headers().correlation_id.as_deref(), Some("mine"));
    assert_eq!(answers[0].headers().message_type.as_deref(), Some("answer"));
    assert_eq!(answers[0].property::<i32>("lucky"), Ok(Some(7)));
}

#[tokio::test]
async fn a_reply_without_an_address_poisons_nothing() {
    // Spring fails the listener, so that a stray return value becomes an endless redelivery.
    let world = World::new().await;
    let container = world.start(echo_to_nobody::DEF).await;
    world.send("requests", "one").await;
    assert_eq!(world.ends.wait_for(1).await[0].kind, EndKind::Settled);
    world.until_empty("requests").await;
    assert_eq!(container.status().failed, 0);
}

#[jms_listener(queue = "q", ack = "transacted", send_to = "replies")]
async fn in_one_transaction(
    text: String,
    delivery: Delivery,
    session: Session,
    log: Bean<Log>,
) -> Result<String, ListenerError> {
    session.send(&queue("audit"), &json(&text), &SendOptions::default()).await?;
    log.add(format!("{text} {}", delivery.count()));
    if text == "poison" || delivery.count() <= 2 {
        return Err(ListenerError::redeliver("not yet"));
    }
    Ok(text)
}

/// C-14: the reply was out although the receive was undone.
#[tokio::test]
async fn what_a_transacted_listener_sends_is_visible_only_when_it_succeeds() {
    let world = World::new().await;
    let _container = world.start(in_one_transaction::DEF).await;
    world.send("q", "third time").await;
    for failures in 1..=2 {
        world.ends.wait_for(failures).await;
        assert_eq!((world.counts("audit").pending, world.counts("replies").pending), (0, 0));
        world.clock.advance(secs(2));
    }
    world.ends.wait_for(3).await;
    assert_eq!(world.ends.kinds()[2], EndKind::Settled);
    assert_eq!(world.left_in("audit").await, [("third time".to_owned(), 1)]);
    assert_eq!(world.left_in("replies").await, [("third time".to_owned(), 1)]);
    world.until_empty("q").await;
}

/// C-14.
#[tokio::test]
async fn what_a_transacted_listener_sends_is_never_visible_when_it_always_fails() {
    let world = World::new().await;
    let _container = world.start(in_one_transaction::DEF).await;
    world.send("q", "poison").await;
    world.ends.wait_for(1).await;
    world.pass_delays_until(7).await;
    world.until_empty("q").await;
    assert_eq!((world.counts("audit").enqueued, world.counts("replies").enqueued), (0, 0));
    assert_eq!(world.left_in("DLQ.q").await.len(), 1);
}

#[jms_listener(queue = "q", ack = "transacted")]
async fn beside_the_transaction(
    text: String,
    delivery: Delivery,
    factory: Bean<ConnectionFactory>,
) -> Result<(), ListenerError> {
    let connection = factory.create_connection().await?;
    let session = connection.create_session(corriere::core::AcknowledgeMode::Auto).await?;
    session.send(&queue("audit"), &json(&text), &SendOptions::default()).await?;
    if delivery.count() <= 2 { Err(ListenerError::redeliver("not yet")) } else { Ok(()) }
}

/// C-14.
#[tokio::test]
async fn a_session_of_its_own_sends_beside_the_transaction() {
    let world = World::new().await;
    let _container = world.start(beside_the_transaction::DEF).await;
    world.send("q", "loud").await;
    world.ends.wait_for(1).await;
    world.pass_delays_until(3).await;
    assert_eq!(world.left_in("audit").await.len(), 3, "one for each delivery, as documented");
}

#[jms_listener(queue = "q", ack = "transacted", send_to = "replies")]
#[expect(clippy::needless_pass_by_value, reason = "a listener owns its arguments")]
fn blocking_in_one_transaction(text: String, delivery: Delivery) -> Result<String, ListenerError> {
    // What a template on the same factory looks for.
    let session = Session::current().ok_or_else(|| ListenerError::dead_letter("no current session"))?;
    let audit = json(&text);
    let runtime = tokio::runtime::Handle::current();
    runtime.block_on(session.send(&queue("audit"), &audit, &SendOptions::default()))?;
    if delivery.count() == 1 { Err(ListenerError::redeliver("not yet")) } else { Ok(text) }
}

#[tokio::test]
async fn a_blocking_listener_joins_the_transaction() {
    let world = World::new().await;
    let _container = world.start(blocking_in_one_transaction::DEF).await;
    world.send("q", "x").await;
    world.ends.wait_for(1).await;
    assert_eq!(world.ends.kinds(), [EndKind::Redelivered]);
    assert_eq!(world.counts("audit").pending, 0);
    world.pass_delays_until(2).await;
    assert_eq!(world.left_in("audit").await.len(), 1);
    assert_eq!(world.left_in("replies").await.len(), 1);
}

#[jms_listener(queue = "q", send_to = "replies")]
async fn with_an_illegal_property(text: String) -> Reply<String> {
    Reply::new(text).property("not-a-name", 1)
}

#[tokio::test]
async fn a_reply_that_cannot_be_made_is_no_reason_to_try_again() {
    let world = World::new().await;
    let _container = world.start(with_an_illegal_property::DEF).await;
    world.send("q", "x").await;
    assert_eq!(world.ends.wait_for(1).await[0].kind, EndKind::DeadLettered);
    assert_eq!(world.counts("replies").enqueued, 0);
    assert_eq!(world.left_in("DLQ.q").await.len(), 1);
}

#[jms_listener(id = "local", queue = "local")]
#[jms_listener(id = "export", queue = "export", ack = "transacted", send_to = "replies")]
async fn on_either(text: String, log: Bean<Log>) -> String {
    log.add(text.clone());
    text
}

#[tokio::test]
async fn a_function_with_two_attributes_is_two_listeners() {
    let world = World::new().await;
    let _local = world.start(on_either::LOCAL).await;
    let _export = world.start(on_either::EXPORT).await;
    world.send("local", "one").await;
    world.ends.wait_for(1).await;
    world.send("export", "two").await;
    let ends = world.ends.wait_for(2).await;
    assert_eq!(ends.iter().map(|end| end.listener).collect::<Vec<_>>(), ["local", "export"]);
    assert_eq!(world.left_in("replies").await, [("two".to_owned(), 1)]);
}

type Answer = Result<String, String>;

#[jms_listener(queue = "q", send_to = "replies")]
async fn answers_within_an_answer(how: String) -> Result<Answer, ListenerError> {
    Ok(if how == "good" { Ok(how) } else { Err("the database is down".to_owned()) })
}

#[tokio::test]
async fn a_result_within_a_result_is_no_reply_and_fails_the_run() {
    let world = World::new().await;
    let _container = world.start(answers_within_an_answer::DEF).await;
    for (number, how) in ["bad", "good"].into_iter().enumerate() {
        world.send("q", how).await;
        let ends = world.ends.wait_for(number * 7 + 1).await;
        assert_eq!(ends[number * 7].kind, EndKind::Redelivered, "{how}");
        let failure = ends[number * 7].failure.as_deref().unwrap();
        assert!(failure.contains("return one `Result`"), "{failure}");
        world.pass_delays_until(number * 7 + 7).await;
    }
    world.until_empty("q").await;
    assert_eq!((world.counts("replies").enqueued, world.counts("DLQ.q").pending), (0, 2));
}

#[jms_listener(queue = "q", ack = "transacted", send_to = "replies")]
async fn ignores_a_failed_send(
    text: String,
    delivery: Delivery,
    session: Session,
) -> Result<String, ListenerError> {
    let size = if delivery.count() == 1 { 2_000_000 } else { 10 };
    let options = SendOptions { deadline: Some(secs(0)), ..SendOptions::default() };
    let sent = session.send(&queue("audit"), &Message::bytes(vec![0; size]), &options).await;
    assert_eq!(sent.is_ok(), delivery.count() > 1);
    Ok(text)
}

#[tokio::test]
async fn a_commit_that_fails_is_a_failed_run_and_the_message_comes_again() {
    let settings = corriere_broker::Settings { memory_limit: 1_000_000, ..Default::default() };
    let world = World::with(settings).await;
    let container = world.start(ignores_a_failed_send::DEF).await;
    world.send("q", "one").await;
    let ends = world.ends.wait_for(1).await;
    assert_eq!((ends[0].kind, ends[0].panicked), (EndKind::Redelivered, false));
    let failure = ends[0].failure.as_deref().unwrap();
    assert!(failure.contains("returned Ok") && failure.contains("rolled back"), "{failure}");
    assert_eq!((world.counts("audit").enqueued, world.counts("replies").enqueued), (0, 0));
    assert_eq!((container.status().handled, container.status().failed), (0, 1));

    world.clock.advance(secs(2));
    let ends = world.ends.wait_for(2).await;
    assert_eq!((ends[1].kind, ends[1].delivery_count), (EndKind::Settled, 2));
    assert_eq!(world.counts("audit").enqueued, 1);
    assert_eq!(world.left_in("replies").await, [("one".to_owned(), 1)]);
    world.until_empty("q").await;
}

#[jms_listener(queue = "requests", ack = "transacted", send_to = "answers")]
async fn answers_at_length(_text: String) -> String {
    "long ".repeat(2_000)
}

#[jms_listener(queue = "requests", ack = "transacted")]
async fn sends_at_length(_text: String, session: Session) -> Result<(), ListenerError> {
    let long = Message::bytes(vec![0; 10_000]);
    session.send(&queue("answers"), &long, &SendOptions::default()).await?;
    Ok(())
}

#[tokio::test]
async fn a_message_whose_reply_finds_no_room_is_tried_again_uncounted_and_never_buried() {
    for listener in [answers_at_length::DEF, sends_at_length::DEF] {
        let settings = corriere_broker::Settings {
            memory_limit: 4_000,
            send_deadline: std::time::Duration::ZERO,
            redelivery: RedeliveryPolicy { maximum_redeliveries: Some(1), ..RedeliveryPolicy::default() },
            ..corriere_broker::Settings::default()
        };
        let world = World::with(settings).await;
        let _container = world.start(listener).await;
        world.send("requests", "m").await;
        world.ends.wait_for(1).await;
        world.pass_delays_until(5).await;
        for end in world.ends.all() {
            assert_eq!((end.kind, end.delivery_count), (EndKind::Redelivered, 1), "{end:?}");
        }
        assert_eq!(world.counts("requests").pending, 1);
    }
}

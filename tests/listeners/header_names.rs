//! Names of headers that are no names of properties, on their way through a listener.

use corriere::containers::EndKind;
use corriere::prelude::*;

use crate::support::{Log, World, json, text_property};

/// What a mapper of headers would be given.
const ILLEGAL: [&str; 8] = ["sentry-trace", "X.Y", "1a", "", "NULL", "true", "between", "JMSFoo"];

#[jms_listener(queue = "requests", send_to = "answers")]
async fn answers_under(name: String) -> Reply<String> {
    Reply::new(name.clone()).property(name, "value")
}

/// C-29: an error that names the header, never a silent drop.
#[tokio::test]
async fn a_reply_under_a_name_that_no_property_may_have_is_a_dead_letter_that_names_it() {
    let world = World::new().await;
    let _container = world.start(answers_under::DEF).await;
    for name in ILLEGAL {
        world.send("requests", name).await;
    }
    for name in ["ok_1", "_a", "$b", "日本"] {
        world.send("requests", name).await;
    }
    world.ends.wait_for(12).await;
    assert!(world.ends.kinds()[..8].iter().all(|kind| *kind == EndKind::DeadLettered));
    let causes = world.drain("DLQ.requests").await;
    for (name, dead) in ILLEGAL.iter().zip(&causes) {
        let cause = text_property(dead.properties(), "dlqDeliveryFailureCause");
        assert!(cause.contains(&format!("`{name}`")), "{cause}");
    }
    let answers = world.drain("answers").await;
    for (name, answer) in ["ok_1", "_a", "$b", "日本"].iter().zip(&answers) {
        assert_eq!(answer.property::<String>(name).unwrap().as_deref(), Some("value"));
    }
    assert_eq!(answers.len(), 4);
}

header! { Trace = "sentry-trace": String; Dotted = "X.Y": String }

#[jms_listener(queue = "foreign")]
async fn on_foreign(trace: Header<Trace>, dotted: Header<Dotted>, log: Bean<Log>) {
    log.add(format!("{} {}", *trace, *dotted));
}

/// C-29: what a client of another make says under such a name can be read.
#[tokio::test]
async fn a_listener_reads_names_that_only_others_may_give() {
    let world = World::new().await;
    let _container = world.start(on_foreign::DEF).await;
    let mut message = json("x");
    for (name, value) in [("sentry-trace", "a trace"), ("X.Y", "dots")] {
        message.properties_mut_unchecked().set_unchecked(name, corriere::core::Value::from(value));
    }
    world.send_message("foreign", &message).await;
    assert_eq!(world.log.wait_for(1).await, ["a trace dots"]);
}

//! Which listeners are started, who acknowledges for them, and how far ahead they have messages.

use corriere::application::Application;
use corriere::config::Document;
use corriere::listener::Acknowledge;
use corriere::prelude::*;

use crate::{errors, texts};

#[jms_listener(queue = "orders", ack = "client")]
async fn on_order(_order: String) {}

#[jms_listener(queue = "emails")]
async fn on_email(_email: String) {}

const FACTORY: &str = "[connection_factories.main]\nurl = \"tcp://127.0.0.1:1\"\n";

fn application(text: &str) -> corriere::ApplicationBuilder {
    let document = Document::from_text("config.toml", &format!("{FACTORY}{text}")).unwrap();
    Application::from_document(document).listeners([on_order::DEF, on_email::DEF])
}

fn planned(text: &str) -> Vec<String> {
    let planned = application(text).check().unwrap_or_else(|error| panic!("{error}"));
    planned.listeners.iter().map(|planned| planned.listener.id.to_owned()).collect()
}

fn refused(text: &str) -> Vec<String> {
    texts(&application(text).check().unwrap_err())
}

#[test]
fn a_listener_that_is_not_enabled_is_not_started_and_nothing_of_it_need_exist() {
    let destinations = "[destinations]\nemails = { queue = \"shop.emails\" }\n";
    assert_eq!(refused(destinations).len(), 1, "`orders` is no key");
    let off = "[listeners.on_order]\nenabled = false\ncontainer = \"none\"\nmessage_converter = \"none\"\n";
    assert_eq!(
        planned(&format!("{destinations}{off}[application]\nexpect = [\"on_order\"]\n")),
        ["on_email"]
    );

    let container = "[listener_containers.default]\nenabled = false\n";
    assert_eq!(planned(container), [""; 0]);
    assert_eq!(planned(&format!("{container}[listeners.on_order]\nenabled = true\n")), ["on_order"]);
    let own = "[listener_containers.mail]\n[listeners.on_email]\ncontainer = \"mail\"\n";
    assert_eq!(planned(&format!("{container}{own}")), ["on_email"]);
    // What is wrong in itself is still wrong.
    assert_eq!(
        refused("[listeners.on_order]\nenabled = \"no\"\n"),
        ["`listeners.on_order.enabled` (config.toml:4:11) is \"no\"; expected true or false"]
    );
}

#[test]
fn transacted_stands_above_every_acknowledge_mode() {
    let mode = |text: &str| {
        let planned = application(text).check().unwrap_or_else(|error| panic!("{error}"));
        planned.listeners[0].settings.acknowledge
    };
    let container = "[listener_containers.default]\ntransacted = true\n";
    assert_eq!(mode(""), Acknowledge::Client);
    assert_eq!(mode(container), Acknowledge::Transacted);
    assert_eq!(mode(&format!("{container}[listeners.on_order]\nack = \"manual\"")), Acknowledge::Transacted);
    assert_eq!(mode(&format!("{container}[listeners.on_order]\ntransacted = false")), Acknowledge::Client);
    assert_eq!(
        mode("[listeners.on_order]\ntransacted = true\nack = \"transacted\""),
        Acknowledge::Transacted
    );
}

#[test]
fn a_listener_cannot_be_transacted_and_not() {
    let expected = |transacted: &str, ack: &str| {
        vec![format!(
            "{transacted} is at odds with {ack}, the mode of a transacted listener; expected `transacted = true` beside that \
             mode, or another mode"
        )]
    };
    for table in ["listeners.on_order", "listener_containers.unused"] {
        assert_eq!(
            errors(&format!("[{table}]\nack = \"transacted\"\ntransacted = false")),
            expected(
                &format!("`{table}.transacted` (config.toml:3:14)"),
                &format!("`{table}.ack` (config.toml:2:7)")
            )
        );
    }
    assert_eq!(
        refused(
            "[listener_containers.default]\ntransacted = false\n[listeners.on_order]\nack = \"transacted\"\n"
        ),
        expected(
            "`listener_containers.default.transacted` (config.toml:4:14)",
            "`listeners.on_order.ack` (config.toml:6:7)"
        )
    );
}

#[test]
fn a_listener_that_would_have_nothing_ahead_is_refused_wherever_that_is_said() {
    for table in ["listeners.on_order", "listener_containers.default"] {
        assert_eq!(
            errors(&format!("[{table}]\nprefetch = 0")),
            [format!(
                "`{table}.prefetch` (config.toml:2:12) is `0`; expected a whole number of messages, 1 or more"
            )]
        );
    }
    let destination = "[listeners.on_order]\nqueue = \"queue://orders?consumer.prefetchSize=0\"\n";
    assert_eq!(
        refused(destination),
        [
            "`listeners.on_order.queue` (config.toml:4:9) is a destination with `consumer.prefetchSize=0`; expected 1 or \
          more for a listener, which does not pull"
        ]
    );
    assert_eq!(planned(&format!("{destination}prefetch = 1")).len(), 2, "its own word is the last");
}

#[jms_listener(topic = "prices", subscription = "audit", client_id = "auditor")]
async fn audits(_price: String) {}

#[jms_listener(topic = "prices", subscription = "other")]
async fn audits_too(_price: String) {}

fn durable(text: &str) -> Result<Vec<String>, Vec<String>> {
    let document = Document::from_text("config.toml", &format!("{FACTORY}{text}")).unwrap();
    let application = Application::from_document(document).listeners([audits::DEF, audits_too::DEF]);
    let checked = application.check().map_err(|error| texts(&error))?;
    Ok(checked.listeners.iter().map(ToString::to_string).collect())
}

#[test]
fn a_durable_listener_has_a_client_id_of_its_own_or_its_factorys() {
    let shown = durable("client_id = \"shop\"\n").unwrap();
    assert!(shown[0].contains("subscription `audit` of client `auditor`"), "{shown:?}");
    assert!(shown[1].contains("subscription `other` of client `shop`"), "{shown:?}");
    let shown = durable("[listeners.audits_too]\nclient_id = \"second\"\nsubscription = \"s\"\n").unwrap();
    assert!(shown[1].contains("subscription `s` of client `second`"), "{shown:?}");

    let refused = durable("").unwrap_err();
    assert_eq!(refused.len(), 1, "{refused:?}");
    for words in ["audits_too: subscription", "\"other\"", "`client_id`", "`[listeners.audits_too]`"] {
        assert!(refused[0].contains(words), "{refused:?}");
    }
}

#[test]
fn two_durable_listeners_never_share_a_client_id() {
    for text in ["client_id = \"auditor\"\n", "[listeners.audits_too]\nclient_id = \"auditor\"\n"] {
        let refused = durable(text).unwrap_err();
        assert_eq!(refused.len(), 1, "{refused:?}");
        for words in ["client id `auditor`", "listener `audits`", "`[listeners.audits_too]`"] {
            assert!(refused[0].contains(words), "{refused:?}");
        }
    }
}

#[test]
fn a_template_never_needs_the_client_id_that_a_durable_listener_keeps() {
    for template in ["[templates.mail]\n", "[templates.mail]\nconnection_factory = \"main\"\n"] {
        let refused = durable(&format!("client_id = \"shop\"\n{template}")).unwrap_err();
        assert_eq!(refused.len(), 1, "{refused:?}");
        for words in
            ["templates.mail", "client id `shop`", "listener `audits_too`", "`[listeners.audits_too]`"]
        {
            assert!(refused[0].contains(words), "{refused:?}");
        }
        // Of its own client the listener has another one; in its transactions the template needs no connection.
        for listener in ["client_id = \"second\"", "transacted = true"] {
            let text = format!("client_id = \"shop\"\n{template}[listeners.audits_too]\n{listener}\n");
            assert_eq!(durable(&text).unwrap().len(), 2, "{text}");
        }
    }
    let other = "client_id = \"shop\"\n[connection_factories.other]\nurl = \"tcp://127.0.0.1:1?jms.clientID=shop\"\n\
                 [listener_containers.default]\nconnection_factory = \"main\"\n\
                 [templates.mail]\nconnection_factory = \"other\"\n";
    let refused = durable(&format!("{other}[listeners.audits_too]\ntransacted = true\n")).unwrap_err();
    assert!(
        refused[0].contains("templates.mail.connection_factory"),
        "another factory is none to join: {refused:?}"
    );
}

/// Case 11 of Spring's.
#[test]
fn a_subscription_without_a_topic_or_a_client_id_without_a_subscription_is_refused_by_its_place() {
    assert_eq!(
        refused("[listeners.on_order]\nsubscription = \"audit\"\nclient_id = \"me\"\n"),
        [
            "`listeners.on_order.subscription` (config.toml:4:16) is \"audit\"; expected a listener to a topic; the queue `orders` has no subscriptions"
        ]
    );
    assert_eq!(
        refused("[listeners.on_email]\nclient_id = \"me\"\n"),
        [
            "`listeners.on_email.client_id` (config.toml:4:13) is \"me\"; expected a `subscription` beside it, which alone needs one"
        ]
    );
    assert_eq!(
        refused("[listeners.on_email]\ntopic = \"t\"\nsubscription = \" \"\nclient_id = \"me\"\n"),
        ["`listeners.on_email.subscription` (config.toml:5:16) is \" \"; expected a name of at most \
           1,024 bytes, without control characters"]
    );
    let over_two_lines =
        "[listeners.on_email]\ntopic = \"t\"\nsubscription = \"a\\nb\"\nclient_id = \"me\"\n";
    assert_eq!(refused(over_two_lines).len(), 1, "{:?}", refused(over_two_lines));
}

//! Which of several settings holds.

use corriere::application::Application;
use corriere::config::{ConfigError, Document};
use corriere::listener::Acknowledge;
use corriere::prelude::*;
use corriere::{ApplicationBuilder, PlannedListener};

use crate::texts;

#[jms_listener(queue = "orders", ack = "transacted", concurrency = "2-8", send_to = "emails")]
async fn on_order(_order: String) -> String {
    String::new()
}

#[jms_listener(queue = "orders")]
async fn on_plain_order(_order: String) {}

#[jms_listener(topic = "prices")]
async fn on_price(_price: String) {}

fn application(text: &str, environment: &[(&str, &str)]) -> ApplicationBuilder {
    let document =
        Document::from_text("config.toml", text).unwrap().with_environment(environment.iter().copied());
    Application::from_document(document).listeners([on_order::DEF, on_plain_order::DEF, on_price::DEF])
}

fn planned(text: &str, listener: &str) -> PlannedListener {
    let planned = application(text, &[]).check().unwrap_or_else(|error| panic!("{error}"));
    planned.listeners.into_iter().find(|planned| planned.listener.id == listener).unwrap()
}

fn refused(text: &str) -> Vec<String> {
    texts(&application(text, &[]).check().unwrap_err())
}

const BASE: &str = "[connection_factories.main]\nurl = \"tcp://127.0.0.1:1\"\n";

#[test]
fn the_built_in_defaults_hold_where_nothing_is_said() {
    let planned = planned(BASE, "on_plain_order");
    assert_eq!(planned.settings.concurrency.to_string(), "1-1");
    assert_eq!(planned.settings.acknowledge, Acknowledge::Auto);
    assert_eq!(planned.settings.prefetch, 10);
    assert_eq!(planned.settings.shutdown_timeout, secs(20));
    assert_eq!(planned.container, "default");
    assert_eq!(planned.connection_factory, "main");
}

#[test]
fn container_then_attribute_then_the_listeners_own_table() {
    let container = "[listener_containers.default]\nconcurrency = \"3-3\"\nack = \"client\"\nprefetch = 1\n";
    let plain = planned(&format!("{BASE}{container}"), "on_plain_order").settings;
    assert_eq!(
        (plain.concurrency.to_string().as_str(), plain.acknowledge, plain.prefetch),
        ("3-3", Acknowledge::Client, 1)
    );

    let attribute = planned(&format!("{BASE}{container}"), "on_order").settings;
    assert_eq!(attribute.concurrency.to_string(), "2-8");
    assert_eq!(attribute.acknowledge, Acknowledge::Transacted);
    assert_eq!(attribute.prefetch, 1);
    assert_eq!(attribute.send_to.unwrap().name(), "emails");

    let own = "[listeners.on_order]\nconcurrency = \"4-16\"\nack = \"auto\"\nqueue = \"other\"\nsend_to = \"topic://sent\"\nprefetch = 7\n";
    let own = planned(&format!("{BASE}{container}{own}"), "on_order").settings;
    assert_eq!(own.concurrency.to_string(), "4-16");
    assert_eq!(own.acknowledge, Acknowledge::Auto);
    assert_eq!(own.prefetch, 7);
    assert_eq!(own.destination.to_string(), "queue://other");
    assert_eq!(own.send_to.unwrap().to_string(), "topic://sent");
}

/// What is printed is what is used: the settings hold the one number that the workers take.
#[test]
fn the_prefetch_of_the_listener_wins_over_the_destinations_and_that_over_the_containers() {
    let prefetch = |text: &str| {
        let planned = planned(&format!("{BASE}{text}"), "on_plain_order");
        let prefetch = planned.settings.prefetch;
        assert!(planned.to_string().contains(&format!(", prefetch {prefetch},")), "{planned}");
        prefetch
    };
    let destination = "queue = \"orders?consumer.prefetchSize=4\"\n";
    let container = "[listener_containers.default]\nprefetch = 2\n";
    assert_eq!(prefetch(&format!("[listeners.on_plain_order]\n{destination}")), 4);
    assert_eq!(prefetch(&format!("[listeners.on_plain_order]\n{destination}{container}")), 4);
    assert_eq!(prefetch(&format!("[listeners.on_plain_order]\nprefetch = 7\n{destination}{container}")), 7);
    assert_eq!(prefetch(container), 2);
}

#[test]
fn file_then_environment_then_program() {
    let text = format!("{BASE}[listeners.on_order]\nprefetch = 1\n");
    let variable = [("CORRIERE__LISTENERS__ON_ORDER__PREFETCH", "2")];
    let prefetch = |builder: ApplicationBuilder| builder.check().unwrap().listeners[0].settings.prefetch;
    assert_eq!(prefetch(application(&text, &[])), 1);
    assert_eq!(prefetch(application(&text, &variable)), 2);
    assert_eq!(prefetch(application(&text, &variable).set("listeners.on_order.prefetch", 3)), 3);
}

#[test]
fn what_the_program_sets_is_checked_like_the_file() {
    let error = application(BASE, &[]).set("listeners.on_order.prefech", 3).check().unwrap_err();
    let ConfigError::UnknownKey { place, nearest, .. } = error else { panic!("{error}") };
    assert_eq!(place.to_string(), "`listeners.on_order.prefech`");
    assert_eq!(nearest.as_deref(), Some("prefetch"));
}

#[test]
fn a_key_that_the_program_sets_may_have_quoted_names() {
    let planned = Application::from_document(Document::from_text("config.toml", BASE).unwrap())
        .listeners([on_plain_order::DEF])
        .set("destinations.\"Orders.IN\".queue", "shop.orders")
        .set("listeners.'on_plain_order'.queue", "Orders.IN")
        .check()
        .unwrap();
    assert_eq!(planned.listeners[0].settings.destination.name(), "shop.orders");
    for key in [
        "",
        "listeners.",
        "listeners..prefetch",
        "listeners.on order.prefetch",
        "listeners.\"on_order.prefetch",
    ] {
        let error = application(BASE, &[]).set(key, 3).check().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "the program sets `{key}`, which is no key; expected names with dots between them, those with unusual \
                 characters in quotes, such as `templates.\"order.template\".priority`"
            )
        );
    }
}

#[test]
fn a_topic_listener_has_one_worker() {
    let container = format!("{BASE}[listener_containers.default]\nconcurrency = \"1-4\"\n");
    assert_eq!(planned(&container, "on_price").settings.concurrency.to_string(), "1-1");
    assert_eq!(
        refused(&format!("{BASE}[listeners.on_price]\nconcurrency = \"2\"")),
        [
            "`listeners.on_price.concurrency` (config.toml:4:15) is \"1-2\"; expected \"1\", as each worker of a listener to \
          the topic `prices` would get every message"
        ]
    );
}

#[test]
fn names_of_other_tables_must_be_there() {
    assert_eq!(
        refused(&format!("{BASE}[templates.t]\nconnection_factory = \"mian\"")),
        [
            "`templates.t.connection_factory` (config.toml:4:22): there is no connection factory `mian`; did you mean \
          `main`?; there is: `main`"
        ]
    );
    assert_eq!(
        refused(&format!("{BASE}[listeners.on_ordr]\nprefetch = 1"))[0].split("; there is:").next(),
        Some(
            "`listeners.on_ordr` (config.toml:3:1): there is no listener `on_ordr`; did you mean `on_order`?"
        )
    );
    assert_eq!(
        refused(&format!("{BASE}[message_converters.mine]\ntype = \"jsn\"")),
        [
            "`message_converters.mine.type` (config.toml:4:8): there is no message converter type `jsn`; did you mean \
          `json`?; there is: `bytes`, `json`, `map`, `object`, `shop`, `text`"
        ]
    );
    assert_eq!(
        refused(&format!("{BASE}[templates.t]\nmessage_converter = \"yaml\"")),
        [
            "`templates.t.message_converter` (config.toml:4:21): there is no message converter `yaml`; there is: `bytes`, \
          `json`, `map`, `object`, `shop`, `text`"
        ]
    );
    assert_eq!(
        refused(&format!("{BASE}[listeners.on_order]\ncontainer = \"slow\"")),
        [
            "`listeners.on_order.container` (config.toml:4:13): there is no listener container `slow`; there is: nothing"
        ]
    );
    assert_eq!(
        refused(&format!("{BASE}[application]\nexpect = [\"on_order\", \"on_mail\"]"))[0]
            .split("; there is:")
            .next(),
        Some("`application.expect` (config.toml:4:24): the listener `on_mail` is not in this program")
    );
}

mod shop {
    use corriere::templates::{BytesConverter, ConverterType, TextConverter};
    use std::sync::Arc;

    corriere::__private::inventory::submit! {
        ConverterType::new::<TextConverter>("shop", || Arc::new(TextConverter))
    }
    corriere::__private::inventory::submit! {
        ConverterType::new::<BytesConverter>("shop", || Arc::new(BytesConverter))
    }
}

/// Which of them it is would be the linker's choice.
#[test]
fn a_type_name_that_two_converters_have_is_refused_where_it_is_used() {
    let both = "the message converter type `shop` is more than one: `corriere_templates::converter::bytes::BytesConverter` and \
                `corriere_templates::converter::text::TextConverter`; give each a name of its own";
    assert_eq!(
        refused(&format!(
            "{BASE}[message_converters.m]\ntype = \"shop\"\n[templates.t]\nmessage_converter = \"m\""
        )),
        [format!("`message_converters.m.type` (config.toml:4:8): {both}")]
    );
    assert_eq!(
        refused(&format!("{BASE}[templates.t]\nmessage_converter = \"shop\"")),
        [format!("`templates.t.message_converter` (config.toml:4:21): {both}")]
    );
}

#[test]
fn with_a_table_of_destinations_code_must_use_its_keys() {
    let text = format!(
        "{BASE}[destinations]\norders = {{ queue = \"shop.orders\" }}\nprice = {{ topic = \"shop.prices\" }}\nmails = {{ queue = \"m\" }}"
    );
    // Where the attribute stands is nothing to write down.
    let refused = |text: &str| -> Vec<String> {
        let without_place = |error: String| {
            let (before, behind) = error.split_once(&format!(" ({}:", file!())).unwrap();
            format!("{before}{}", behind.split_once(')').unwrap().1)
        };
        refused(text).into_iter().map(without_place).collect()
    };
    let known =
        "it has `orders`, `price`, `mails`; beside these, `queue://NAME` and `topic://NAME` can be used";
    assert_eq!(
        refused(&text),
        [
            format!(
                "`#[jms_listener] on_order: send_to`: `[destinations]` has no key `emails`, did you mean `mails`?; {known}"
            ),
            format!(
                "`#[jms_listener] on_price: topic`: `[destinations]` has no key `prices`, did you mean `price`?; {known}"
            ),
        ]
    );
}

#[test]
fn a_listener_without_a_connection_factory_is_named() {
    let errors = refused("");
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert_eq!(
        errors[0],
        "listener `on_order` has no connection factory: `listener_containers.default.connection_factory` is missing, and it \
         cannot be guessed; there is: nothing"
    );
    let errors = refused(&format!("{BASE}[connection_factories.other]\nurl = \"tcp://127.0.0.1:1\""));
    assert_eq!(
        errors[1],
        "listener `on_plain_order` has no connection factory: `listener_containers.default.connection_factory` is missing, \
         and it cannot be guessed; there is: `main`, `other`"
    );
}

#[test]
fn a_wrong_url_is_named_once_with_its_key() {
    let errors =
        refused("[connection_factories.main]\nurl = \"vm://x?jms.redeliveryPolicy.maximumRedeliverie=6\"");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].starts_with("`connection_factories.main.url` (config.toml:2:15): "), "{errors:?}");
    assert!(errors[0].contains("jms.redeliveryPolicy.maximumRedeliveries"), "{errors:?}");
}

#[test]
fn an_embedded_broker_alone_is_the_connection_factory() {
    let planned = planned("[broker]\nname = \"alone\"", "on_order");
    assert_eq!(planned.connection_factory, "default");
    assert_eq!(planned.settings.factory.url(), "vm://alone");
}

//! What holds where a configuration says nothing is what its documentation says, and what a plan remarks.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::application::{broker_settings, journal_options};
use crate::config::{Document, KeySchema, Kind, Shape, TABLES, TableSchema, samples};
use crate::listener::{Acknowledge, Invocation, ListenerDestination, Outcome};

const LISTENER: ListenerDef = ListenerDef {
    id: "on_order",
    module: "shop",
    location: "src/shop.rs:1:1",
    destination: ListenerDestination::Queue("orders"),
    subscription: None,
    client_id: None,
    acknowledge: None,
    concurrency: None,
    send_to: None,
    container: None,
    beans: &[],
    replies: false,
    blocking: false,
    invoke: |_: &mut Invocation| Box::pin(async { Outcome::DONE }),
};

fn plan_of(text: &str, listener: ListenerDef) -> Result<(Configuration, Plan), String> {
    let document = Document::from_text("config.toml", text).map_err(|error| error.to_string())?;
    let configuration = document.read(&["on_order"]).map_err(|error| error.to_string())?;
    let (clock, listeners) = (Clock::system(), [listener]);
    let parts = Parts { factories: &[], beans: &[], url: None, listeners: &listeners, clock: &clock };
    let mut problems = Problems::default();
    let plan = Plan::new(&configuration, &parts, &mut problems);
    problems.into_result((configuration, plan)).map_err(|error| error.to_string())
}

/// All that a configuration comes to, as text.
fn effects(text: &str) -> String {
    let (configuration, plan) = plan_of(text, LISTENER).unwrap_or_else(|error| panic!("{text}{error}"));
    let mut effects = Vec::new();
    let broker = configuration.broker.expect("there is one");
    let mut store = broker.store.clone();
    // Without this the archive's directory means nothing.
    let archives = store.archive_data_logs.replace(true);
    effects.push(format!(
        "{} {:?} {}",
        broker.name,
        broker.listen.as_ref().map(|listen| &listen.value[..]).unwrap_or_default(),
        archives == Some(true)
    ));
    effects.push(format!("{:?}", broker_settings(&broker)));
    effects.push(format!("{:?}", journal_options(&store, Path::new("data"))));
    for NamedFactory { name, factory, .. } in plan.factories {
        let [queue, topic] = ["queue://q", "topic://t"].map(|name| name.parse().expect("a destination"));
        let (queue, topic) = (factory.prefetch(&queue), factory.prefetch(&topic));
        effects.push(format!("{name} {queue} {topic} {}", factory.has_bounded_extension()));
        let (durable, browser) = (factory.durable_prefetch(), factory.browser_prefetch());
        effects.push(format!("{durable} {browser} {}", factory.optimizes_acknowledge()));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let beans = runtime.block_on(plan.beans.make(Duration::ZERO)).expect("they are made");
    for (name, table) in configuration.templates.iter() {
        let template: JmsTemplate = beans.copy(name).expect("it is a bean");
        let (mode, priority) = (table.delivery_mode.unwrap_or_default(), table.priority.unwrap_or_default());
        let time_to_live = table.time_to_live.unwrap_or_default();
        effects.push(format!("{name} {mode:?} {priority:?} {time_to_live:?}"));
        let shown = format!("{template:?}");
        let mode = shown.find(" mode:").expect("its sessions have one");
        let options = shown.find("send_options").expect("it has some");
        effects.push(shown[mode..options].to_owned());
    }
    for planned in plan.listeners {
        effects.push(format!("{planned} {:?}", planned.settings));
    }
    effects.join("\n")
}

/// A key of ours, in its table or in a table within that.
#[derive(Clone, Copy)]
struct Key {
    table: &'static TableSchema,
    inner: Option<&'static str>,
    schema: &'static KeySchema,
}

/// The keys of tables that hold defaults.
fn keys() -> Vec<Key> {
    let mut keys = Vec::new();
    for table in TABLES {
        for schema in table.keys {
            keys.push(Key { table, inner: None, schema });
            if let Kind::Table(inner) = schema.kind {
                keys.extend(inner.iter().map(|key| Key { table, inner: Some(schema.name), schema: key }));
            }
        }
    }
    let holds = |table: &TableSchema| {
        keys.iter().any(|key| key.table.name == table.name && key.schema.default.is_some())
    };
    keys.iter().filter(|key| holds(key.table)).copied().collect()
}

/// A configuration that says what `says` answers, and otherwise nothing that need not be said.
fn text(says: impl Fn(Key) -> Option<String>) -> String {
    let (mut text, mut header) = (String::new(), String::new());
    // Before the tables within it stand a table's own keys.
    let mut keys = keys();
    keys.sort_by_key(|key| (key.table.name, key.inner));
    for key in keys {
        let name = match key.table.shape {
            Shape::Single => key.table.name.to_owned(),
            // A template is a bean, as a connection factory is, and no two have one name.
            _ if key.table.name == "templates" => "templates.mail".to_owned(),
            Shape::Named | Shape::Open => format!("{}.default", key.table.name),
        };
        let of_key = [Some(name.as_str()), key.inner].into_iter().flatten().collect::<Vec<_>>().join(".");
        if of_key != header {
            header = of_key;
            text.push_str(&format!("[{header}]\n"));
        }
        let required = key.schema.is_required.then(|| "\"vm://local\"".to_owned());
        if let Some(value) = says(key).or(required) {
            text.push_str(&format!("{} = {value}\n", key.schema.name));
        }
    }
    text
}

fn is(key: Key, other: Key) -> bool {
    (key.table.name, key.inner, key.schema.name) == (other.table.name, other.inner, other.schema.name)
}

#[test]
fn the_defaults_that_are_documented_are_those_that_hold() {
    let documented = |key: Key| key.schema.default.map(str::to_owned);
    let nothing_said = effects(&text(|_| None));
    assert_eq!(effects(&text(documented)), nothing_said);
    // And each of them says something: another value would make a difference.
    for key in keys().into_iter().filter(|key| key.schema.default.is_some()) {
        let other = match key.schema.kind {
            Kind::Name(_) => vec!["\"text\"".to_owned()],
            kind => samples(kind).right,
        };
        let other = other.into_iter().find(|other| Some(other.as_str()) != key.schema.default);
        let changed = text(|this| if is(this, key) { other.clone() } else { None });
        assert_ne!(effects(&changed), nothing_said, "nobody would see a wrong default: {changed}");
    }
}

#[test]
fn what_is_documented_of_a_preset_is_what_it_sets() {
    let with_preset = text(|key| (key.schema.name == "preset").then(|| "\"activemq\"".to_owned()));
    let documented = |key: Key| key.schema.activemq.map(str::to_owned);
    assert_eq!(effects(&text(documented)), effects(&with_preset));
    let values = keys().into_iter().filter(|key| key.schema.activemq.is_some());
    for key in values {
        let without = text(|this| if is(this, key) { None } else { documented(this) });
        assert_ne!(effects(&without), effects(&with_preset), "the preset does not set it: {without}");
    }
}

const FACTORY: &str = "[connection_factories.main]\nurl = \"vm://local\"\n";

fn remarks(text: &str) -> Vec<String> {
    let (_, plan) = plan_of(&format!("{FACTORY}{text}"), LISTENER).unwrap_or_else(|error| panic!("{error}"));
    plan.remarks.iter().map(ToString::to_string).collect()
}

#[test]
fn a_listener_that_is_not_started_is_remarked_with_what_says_so() {
    assert_eq!(
        remarks("[listeners.on_order]\nenabled = false"),
        ["listener `on_order` is not started, as `listeners.on_order.enabled` (config.toml:4:11) says"]
    );
    let container = "[listener_containers.default]\nenabled = false\n";
    assert_eq!(
        remarks(container),
        [
            "listener `on_order` is not started, as `listener_containers.default.enabled` (config.toml:4:11) says"
        ]
    );
    assert_eq!(remarks(&format!("{container}[listeners.on_order]\nenabled = true")), [""; 0]);
}

#[test]
fn a_key_without_effect_is_remarked() {
    let (_, plan) =
        plan_of("[broker]\nstore.use_nio = true\n", LISTENER).unwrap_or_else(|error| panic!("{error}"));
    assert!(
        matches!(&*plan.remarks, [Remark::WithoutEffect(key)] if key.place.key() == "broker.store.use_nio")
    );
}

/// What is wrong.
fn wrong(text: &str, listener: ListenerDef) -> String {
    plan_of(text, listener).err().unwrap_or_else(|| panic!("it is right: {text}"))
}

#[test]
fn all_that_is_wrong_with_a_listener_is_said_at_once() {
    let listener = ListenerDef { acknowledge: Some(Acknowledge::Transacted), ..LISTENER };
    let text = format!(
        "{FACTORY}[destinations]\nknown = {{ queue = \"q\" }}\n[listeners.on_order]\nqueue = \"unknown\"\ntransacted = false\n\
         container = \"none\"\nmessage_converter = \"nothing\"\nsend_to = \"emails\"\n"
    );
    let said = wrong(&text, listener);
    for key in ["queue", "transacted", "container", "message_converter", "send_to"] {
        assert!(said.contains(&format!("`listeners.on_order.{key}` (config.toml:")), "{key}: {said}");
    }
}

#[test]
fn a_factory_of_the_program_is_not_taken_for_the_table_of_its_name() {
    let document = Document::from_text("config.toml", FACTORY).expect("it is TOML");
    let configuration = document.read(&[]).expect("it is right");
    let factory = ConnectionFactory::from_url("vm://other").expect("a URL");
    let (clock, factories) = (Clock::system(), [("main".to_owned(), factory)]);
    let parts = Parts { factories: &factories, beans: &[], url: None, listeners: &[], clock: &clock };
    let mut problems = Problems::default();
    Plan::new(&configuration, &parts, &mut problems);
    let said = problems.into_result(()).expect_err("two have one name").to_string();
    assert!(
        said.starts_with(
            "2 beans are named `main`: the program's `main` and `connection_factories.main.url` (config.toml:2:7);"
        ),
        "{said}"
    );
}

#[test]
fn an_acknowledge_mode_beside_a_transaction_is_remarked_with_both_places() {
    let container = "[listener_containers.default]\ntransacted = true\n";
    assert_eq!(
        remarks(&format!("{container}[listeners.on_order]\nack = \"client\"")),
        [
            "listener `on_order` is transacted, as `listener_containers.default.transacted` (config.toml:4:14) says; \
          `listeners.on_order.ack` (config.toml:6:7) has no effect"
        ]
    );
    for text in [
        "",
        "[listeners.on_order]\nack = \"transacted\"",
        "[listeners.on_order]\ntransacted = false\nack = \"client\"",
    ] {
        assert_eq!(remarks(&format!("{container}{text}")), [""; 0], "{text}");
    }
}

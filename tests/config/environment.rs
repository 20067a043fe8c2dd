//! Environment variables over the file (case C-38). The environment is given as a map: the process's own is left alone.

use std::path::Path;
use std::time::Duration;

use corriere::config::{Configuration, Document, Origin, Preset};
use corriere::core::Priority;
use corriere::listener::Concurrency;
use corriere::templates::ReceiveTimeout;

use crate::texts;

const FILE: &str = r#"
    [broker]
    name = "local"

    [templates.order_template]
    receive_timeout = "60s"

    [templates.order]
    receive_timeout = "60s"

    [destinations]
    orders = { queue = "shop.orders" }

    [beans.mailer]
    type = "smtp_mailer"
    passWord = "00123"
"#;

fn document(environment: &[(&str, &str)]) -> Document {
    Document::from_text("config.toml", FILE).unwrap().with_environment(environment.iter().copied())
}

fn read(environment: &[(&str, &str)]) -> Configuration {
    document(environment).read(&["on_order"]).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(variable: &str, expected: &str) {
    let error = document(&[(variable, "x")]).read(&["on_order"]).unwrap_err();
    assert_eq!(texts(&error), [expected]);
}

fn receive_timeout(configuration: &Configuration, template: &str) -> Option<ReceiveTimeout> {
    configuration.templates.get(template).unwrap().receive_timeout
}

#[test]
fn a_variable_wins_over_the_file_and_says_so() {
    let configuration =
        read(&[("CORRIERE__DESTINATIONS__ORDERS__QUEUE", "other"), ("CORRIERE__BEANS__MAILER__TYPE", "t")]);
    assert_eq!(configuration.destinations.queue("orders").unwrap().name(), "other");
    let origin = configuration.beans.get("mailer").unwrap().bean_type.place.origin();
    assert_eq!(*origin, Origin::Environment { variable: "CORRIERE__BEANS__MAILER__TYPE".to_owned() });
}

#[test]
fn the_keys_of_the_store_can_be_set() {
    let configuration = read(&[
        ("CORRIERE__BROKER__DATA_DIRECTORY", "/var/lib/shop"),
        ("CORRIERE__BROKER__SYNC_ON_WRITE", "false"),
        ("CORRIERE__BROKER__STORE__MAX_FILE_LENGTH", "1MiB"),
        ("CORRIERE__BROKER__STORE__CLEANUP_INTERVAL", "5000"),
        ("CORRIERE__BROKER__STORE__USE_NIO", "false"),
    ]);
    let store = configuration.broker.unwrap().store;
    let data_directory = store.data_directory.unwrap();
    assert_eq!(data_directory.value, Path::new("/var/lib/shop"));
    let variable = "CORRIERE__BROKER__DATA_DIRECTORY".to_owned();
    assert_eq!(*data_directory.place.origin(), Origin::Environment { variable });
    assert_eq!(store.sync_on_write, Some(false));
    assert_eq!(store.max_file_length, Some(1 << 20));
    assert_eq!(store.cleanup_interval, Some(Duration::from_secs(5)));
    assert_eq!(configuration.without_effect.len(), 1);
}

#[test]
fn a_list_is_written_as_in_the_file_or_with_commas() {
    let addresses = |value: &str| {
        let broker = read(&[("CORRIERE__BROKER__LISTEN", value)]).broker.unwrap();
        broker.listen.unwrap().value
    };
    assert_eq!(addresses(r#"["tcp://127.0.0.1:0"]"#), ["tcp://127.0.0.1:0"]);
    assert_eq!(
        addresses(r#" [ "tcp://[::1]:0", "tcp://127.0.0.1:1" ] "#),
        ["tcp://[::1]:0", "tcp://127.0.0.1:1"]
    );
    assert_eq!(addresses("tcp://[::1]:0, tcp://127.0.0.1:1"), ["tcp://[::1]:0", "tcp://127.0.0.1:1"]);
    assert!(addresses("[]").is_empty() && addresses("").is_empty());
}

#[test]
fn a_list_that_cannot_be_read_is_refused() {
    for value in ["[tcp://127.0.0.1:0]", "[1]", "[\"a\""] {
        let error = document(&[("CORRIERE__BROKER__LISTEN", value)]).read(&["on_order"]).unwrap_err();
        assert_eq!(
            texts(&error),
            [format!(
                "`broker.listen` (environment variable CORRIERE__BROKER__LISTEN) is \"{value}\"; expected a list of \
                 addresses such as [\"tcp://127.0.0.1:61616\"]"
            )]
        );
    }
}

#[test]
fn a_preset_can_be_chosen() {
    let broker = read(&[("CORRIERE__BROKER__PRESET", "activemq")]).broker.unwrap();
    assert_eq!(broker.preset, Some(Preset::ActiveMq));
}

#[test]
fn names_with_underscores_are_found_whatever_the_case() {
    for variable in [
        "CORRIERE__TEMPLATES__ORDER_TEMPLATE__RECEIVE_TIMEOUT",
        "corriere__templates__order_template__receive_timeout",
        "Corriere__Templates__Order_Template__Receive_Timeout",
    ] {
        let configuration = read(&[(variable, "5s")]);
        let changed = Some(ReceiveTimeout::After(Duration::from_secs(5)));
        assert_eq!(receive_timeout(&configuration, "order_template"), changed, "{variable}");
        assert_ne!(receive_timeout(&configuration, "order"), changed, "{variable}");
    }
}

#[test]
fn numbers_and_signs_arrive_as_text_and_mean_the_same() {
    let configuration = read(&[
        ("CORRIERE__TEMPLATES__ORDER_TEMPLATE__RECEIVE_TIMEOUT", "-1"),
        ("CORRIERE__BROKER__MEMORY_LIMIT", "1048576"),
        ("CORRIERE__BROKER__DEAD_LETTER_NON_PERSISTENT", "true"),
        ("CORRIERE__BROKER__REDELIVERY__MAXIMUM_REDELIVERIES", "3"),
    ]);
    assert_eq!(receive_timeout(&configuration, "order_template"), Some(ReceiveTimeout::NoWait));
    let broker = configuration.broker.unwrap();
    assert_eq!(broker.memory_limit, Some(1 << 20));
    assert_eq!(broker.dead_letter_non_persistent, Some(true));
    assert_eq!(broker.redelivery.maximum_redeliveries, Some(3));
}

#[test]
fn a_listener_needs_no_table_in_the_file() {
    let configuration = read(&[("CORRIERE__LISTENERS__ON_ORDER__CONCURRENCY", "4-16")]);
    let listener = configuration.listeners.get("on_order").unwrap();
    assert_eq!(listener.concurrency.as_ref().unwrap().value, Concurrency::new(4, 16));
}

#[test]
fn a_name_that_only_the_program_gave_is_known_and_the_program_has_the_last_word() {
    let mut document = document(&[
        ("CORRIERE__TEMPLATES__FROM_CODE__PRIORITY", "7"),
        ("CORRIERE__TEMPLATES__FROM_CODE__TIME_TO_LIVE", "1s"),
        ("CORRIERE__TEMPLATES__MAIL_OUT__PRIORITY", "6"),
        ("CORRIERE__BEANS__NEW__PASSWORD", "x"),
    ]);
    document.set("templates.from_code.time_to_live", "2s");
    document.set("templates.\"mail.out\".receive_timeout", 5);
    document.set("beans.new.type", "mailer");
    let configuration = document.read(&[]).unwrap_or_else(|error| panic!("{error}"));
    let template = configuration.templates.get("from_code").unwrap();
    assert_eq!(template.priority, Some(Priority::new(7).unwrap()));
    assert_eq!(template.time_to_live, Some(Duration::from_secs(2)));
    let quoted = configuration.templates.get("mail.out").unwrap();
    assert_eq!(quoted.priority, Some(Priority::new(6).unwrap()));
    assert_eq!(quoted.receive_timeout, Some(ReceiveTimeout::After(Duration::from_millis(5))));
    assert!(format!("{:?}", configuration.beans.get("new").unwrap().settings).contains("password"));
}

#[test]
fn a_list_is_separated_by_commas() {
    let configuration = read(&[("CORRIERE__APPLICATION__EXPECT", "on_order, on_email")]);
    assert_eq!(configuration.application.expect.unwrap().value, ["on_order", "on_email"]);
}

#[test]
fn a_password_stays_the_text_that_it_is_and_finds_its_key() {
    let configuration =
        read(&[("CORRIERE__BEANS__MAILER__PASSWORD", "007"), ("CORRIERE__BEANS__MAILER__PORT", "25")]);
    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Mailer {
        #[serde(rename = "passWord")]
        password: String,
        port: u16,
    }
    let settings = configuration.beans.get("mailer").unwrap().settings.clone();
    assert_eq!(settings.read::<Mailer>().unwrap(), Mailer { password: "007".to_owned(), port: 25 });
}

#[test]
fn a_list_of_a_bean_is_written_as_one_of_ours() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Settings {
        tokens: Vec<String>,
        ports: Vec<u16>,
    }
    for (tokens, ports) in [("[\"a\", \"b\"]", "[\"1\", \"2\"]"), ("a, b", "1,2")] {
        let text = "[beans.b]\ntype = \"x\"\nports = \"${env:PORTS}\"";
        let document = Document::from_text("config.toml", text).unwrap();
        let document = document.with_environment([("CORRIERE__BEANS__B__TOKENS", tokens), ("PORTS", ports)]);
        let settings = document.read(&[]).unwrap().beans.get("b").unwrap().settings.clone();
        let expected = Settings { tokens: vec!["a".to_owned(), "b".to_owned()], ports: vec![1, 2] };
        assert_eq!(settings.read::<Settings>().unwrap(), expected);
    }
}

/// An empty value is an empty text: right for a text, refused where something else is expected.
#[test]
fn an_empty_value_is_an_empty_text() {
    let error =
        document(&[("CORRIERE__TEMPLATES__ORDER_TEMPLATE__RECEIVE_TIMEOUT", "")]).read(&[]).unwrap_err();
    assert!(
        error.to_string().starts_with(
            "`templates.order_template.receive_timeout` (environment variable \
             CORRIERE__TEMPLATES__ORDER_TEMPLATE__RECEIVE_TIMEOUT) is \"\"; expected a duration"
        ),
        "{error}"
    );
}

#[test]
fn a_variable_that_matches_nothing_is_refused_with_the_nearest() {
    let is_no = |variable: &str, reason: &str| {
        format!("the environment variable `{variable}` matches no key of the configuration: {reason}")
    };
    let cases = [
        (
            "CORRIERE__TEMPLTES__ORDER_TEMPLATE__PRIORITY",
            "there is no table named `templtes`; did you mean `CORRIERE__TEMPLATES__ORDER_TEMPLATE__PRIORITY`?",
        ),
        (
            "CORRIERE__TEMPLATES__ORDER_TEMPLAT__PRIORITY",
            "there is no `order_templat` in `templates`; did you mean `CORRIERE__TEMPLATES__ORDER_TEMPLATE__PRIORITY`?",
        ),
        (
            "CORRIERE__TEMPLATES__ORDER_TEMPLATE__PRIORTY",
            "there is no key in `templates.order_template` named `priorty`; did you mean \
             `CORRIERE__TEMPLATES__ORDER_TEMPLATE__PRIORITY`?",
        ),
        ("CORRIERE__TEMPLATES__ORDER_TEMPLATE", "`templates` needs a name and a key behind it"),
        ("CORRIERE__BROKER", "`broker` is a table; a key must follow"),
        ("CORRIERE__BROKER__NAME__FIRST", "`broker.name` is no table"),
        ("CORRIERE__BROKER_NAME", "there is no table named `broker_name`; did you mean `CORRIERE__BROKER`?"),
        ("CORRIERE__", "there is no table named ``"),
    ];
    for (variable, reason) in cases {
        refused(variable, &is_no(variable, reason));
    }
}

/// Kubernetes makes variables with one underscore for a service that is named `corriere`.
#[test]
fn a_variable_with_one_underscore_changes_and_breaks_nothing() {
    let configuration =
        read(&[("CORRIERE_BROKER_NAME", "other"), ("CORRIERE_PORT_61616_TCP", "tcp://10.0.0.1:61616")]);
    assert_eq!(configuration.broker.unwrap().name, "local");
}

#[test]
fn a_key_of_a_policy_is_set_by_the_name_that_the_file_gives_it() {
    let file = "[broker.policies.fast_orders]\nqueue = \"orders.>\"\n";
    let document = |variable: &str| {
        let document = Document::from_text("config.toml", file).unwrap();
        document.with_environment([(variable, "7")])
    };
    let read = document("CORRIERE__BROKER__POLICIES__FAST_ORDERS__PREFETCH").read(&[]).unwrap();
    assert_eq!(read.broker.unwrap().policies[0].prefetch, Some(7));
    let inner =
        document("CORRIERE__BROKER__POLICIES__FAST_ORDERS__REDELIVERY__MAXIMUM_REDELIVERIES").read(&[]);
    assert_eq!(inner.unwrap().broker.unwrap().policies[0].redelivery.maximum_redeliveries, Some(Some(7)));
    for (variable, expected) in [
        (
            "CORRIERE__BROKER__POLICIES__FAST_ORDRES__PREFETCH",
            "did you mean `CORRIERE__BROKER__POLICIES__FAST_ORDERS__PREFETCH`?",
        ),
        ("CORRIERE__BROKER__POLICIES", "`broker.policies` needs a name and a key behind it"),
        ("CORRIERE__BROKER__POLICIES__FAST_ORDERS", "`broker.policies` needs a name and a key behind it"),
    ] {
        let error = document(variable).read(&[]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

//! What a check shows: every value with where it came from, defaults included, and no secret.

use corriere::application::Application;
use corriere::config::Document;
use corriere::prelude::*;

#[jms_listener(queue = "orders", ack = "transacted", concurrency = "2-8", send_to = "emails")]
async fn on_checked_order(order: String) -> String {
    order
}

#[derive(Debug)]
struct CheckedMailer;

#[corriere::bean(type = "checked_mailer")]
impl CheckedMailer {
    fn new(_settings: std::collections::HashMap<String, serde_json::Value>) -> Self {
        Self
    }
}

#[jms_listener(queue = "nothing")]
async fn on_nothing(_text: String) {}

const FILE: &str = r#"
[broker]
name = "checked"
memory_limit = "${env:LIMIT}"
preset = "activemq"
store.use_nio = true

[connection_factories.main]
url = "vm://checked?jms.clientID=shop&jms.password=geheim"
user = "${file:user}"

[destinations]
orders = { queue = "shop.orders" }
emails = { queue = "shop.emails" }

[templates."order.template"]
default_destination = "orders"

[listeners.on_nothing]
enabled = false

[listeners.on_checked_order]
prefetch = 5

[beans.mailer]
type = "checked_mailer"
url = "smtp://user:geheim@host"
retries = { count = 3, "per.day" = 5 }
tags = ["a", "b"]
password = "geheim"

[application]
expect = ["on_checked_order"]
"#;

const PROFILE: &str = "[broker]\nsend_deadline = \"5s\"\n[templates.\"order.template\"]\npriority = 7\n";

#[test]
fn everything_that_holds_is_shown_with_where_it_came_from() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("config.toml", FILE.trim());
    write("config.prod.toml", PROFILE);
    write("user", "geheim\n");
    let environment = [
        ("CORRIERE_PROFILE", "prod"),
        ("LIMIT", "32MiB"),
        ("CORRIERE__LISTENER_CONTAINERS__DEFAULT__SHUTDOWN_TIMEOUT", "5s"),
        ("CORRIERE__BEANS__MAILER__URL", "smtp://user:geheim@host"),
    ];
    let document = Document::from_file_in(directory.path().join("config.toml"), environment).unwrap();
    let mut document = document;
    document.set("listener_containers.default.prefetch", 3);
    let check =
        Application::from_document(document).listeners([on_checked_order::DEF, on_nothing::DEF]).check();
    let check = check.unwrap_or_else(|error| panic!("{error}")).to_string();
    let shown = check.replace(&format!("{}/", directory.path().display()), "");
    assert!(!shown.contains("geheim"), "{shown}");
    insta::with_settings!({ snapshot_path => "snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("check", shown);
    });
}

#[test]
fn what_is_wrong_is_said_and_nothing_shown() {
    let document = Document::from_text("config.toml", "[broker]\nname = 5").unwrap();
    let error = Application::from_document(document).listeners([]).check().unwrap_err();
    assert!(error.to_string().starts_with("`broker.name` (config.toml:2:8) is `5`"), "{error}");
}

#[tokio::test]
async fn a_variable_makes_a_start_a_check() {
    let document = Document::from_text("config.toml", "[broker]\nname = \"only-checked\"").unwrap();
    for (value, is_check) in [("1", true), ("true", true), ("0", false), ("", false)] {
        let document = document.clone().with_environment([("CORRIERE_CHECK", value)]);
        let started = Application::from_document(document).listeners([]).start().await;
        match started {
            Err(Error::OnlyChecked) => assert!(is_check, "{value}"),
            Ok(app) => {
                assert!(!is_check, "{value}");
                app.stop().await;
            }
            Err(error) => panic!("{value}: {error}"),
        }
    }
}

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

/// The line of a key in a table, without the spaces that align it.
fn line(check: &str, table: &str, key: &str) -> String {
    let mut lines = check.lines().skip_while(|line| *line != format!("[{table}]"));
    let line = lines.find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{table} {key}: {check}"));
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_prefetch_that_is_not_said_is_shown_as_it_holds_for_where_the_url_leads() {
    let text = "[broker]\nname = \"shown\"\npreset = \"activemq\"\n\
                [connection_factories.own]\nurl = \"vm://shown?jms.prefetchPolicy.queuePrefetch=5\"\n\
                [connection_factories.all]\nurl = \"vm://shown?jms.prefetchPolicy.all=7\"\n\
                [connection_factories.said]\nurl = \"vm://shown\"\nprefetch.queue = 9\n\
                [connection_factories.elsewhere]\nurl = \"tcp://127.0.0.1:1?jms.password=geheim\"\n";
    let document = Document::from_text("config.toml", text).unwrap();
    let check = Application::from_document(document).listeners([]).check().unwrap().to_string();
    let of_preset = "# default of the preset `activemq`";
    for (factory, key, expected) in [
        ("own", "queue", "5 # the option `jms.prefetchPolicy.queuePrefetch` of `url`".to_owned()),
        ("own", "topic", format!("32766 {of_preset}")),
        ("own", "bounded_extension", format!("false {of_preset}")),
        ("all", "queue", "7 # the option `jms.prefetchPolicy.all` of `url`".to_owned()),
        ("all", "topic", "7 # the option `jms.prefetchPolicy.all` of `url`".to_owned()),
        ("all", "bounded_extension", format!("false {of_preset}")),
        ("said", "queue", "9 # config.toml:10:18".to_owned()),
        ("elsewhere", "queue", "100 # default".to_owned()),
        ("elsewhere", "topic", "1000 # default".to_owned()),
        ("elsewhere", "bounded_extension", "true # default".to_owned()),
    ] {
        let shown = line(&check, &format!("connection_factories.{factory}"), &format!("prefetch.{key}"));
        assert_eq!(shown, format!("prefetch.{key} = {expected}"), "{factory}");
    }
}

#[test]
fn the_implied_connection_factory_and_all_beans_are_shown_without_a_secret() {
    let text = "[broker]\nname = \"implied\"\n[templates.t]\nmessage_converter = \"c\"\n[message_converters.c]\ntype = \"text\"\n";
    let check = |text: &str, environment: &[(&str, &str)]| {
        let document = Document::from_text("config.toml", text).unwrap();
        let document = document.with_environment(environment.iter().copied());
        let check = Application::from_document(document).named_bean("greeting", 1_u8).listeners([]).check();
        check.unwrap_or_else(|error| panic!("{error}"))
    };
    let implied = check(text, &[]);
    let factories: Vec<_> = implied.connection_factories.iter().map(ToString::to_string).collect();
    assert_eq!(factories, ["`default`: vm://implied"]);
    let names: Vec<_> = implied.beans.iter().map(|bean| &*bean.name).collect();
    assert_eq!(names, ["greeting", "default", "c", "t"], "a template after its converter");
    assert!(implied.to_string().contains("# `greeting`: u8\n"), "{implied}");

    let text = "[connection_factories.main]\nurl = \"${env:BROKER_PASSWORD_URL}\"\n";
    let hidden = check(text, &[("BROKER_PASSWORD_URL", "tcp://127.0.0.1:1?jms.userName=geheim")]);
    assert!(!hidden.to_string().contains("127.0.0.1"), "{hidden}");
    assert_eq!(hidden.connection_factories[0].url, "***");
}

/// As a process of its own starts two applications of which the second is wrong, and tells its exit code.
const TWO_APPLICATIONS: &str = "TEST_TWO_APPLICATIONS";

#[test]
fn a_wrong_application_after_a_right_one_decides_how_a_check_ends() {
    if std::env::var_os(TWO_APPLICATIONS).is_some() {
        let code = corriere::__private::run_main(async {
            let start = |text: &str| {
                let document = Document::from_text("config.toml", text).unwrap();
                let document = document.with_environment([("CORRIERE_CHECK", "1")]);
                Application::from_document(document).listeners([]).start()
            };
            let first = start("[broker]\nname = \"right\"").await.map(drop);
            start("[broker]\nname = 5").await.map(drop).unwrap_err();
            first
        });
        let is_good = format!("{code:?}") == format!("{:?}", std::process::ExitCode::SUCCESS);
        std::process::exit(if is_good { 0 } else { 7 });
    }
    let mut itself = std::process::Command::new(std::env::current_exe().unwrap());
    itself.args([
        "--exact",
        "--nocapture",
        "check::a_wrong_application_after_a_right_one_decides_how_a_check_ends",
    ]);
    let ended = itself.env(TWO_APPLICATIONS, "1").output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(7), "{said}");
    assert_eq!(said.matches("Error: `broker.name` (config.toml:2:8) is `5`").count(), 1, "{said}");
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

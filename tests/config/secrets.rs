//! What placeholders bring, and what a bean is told, may be secret: no error and no form for debugging shows it.

use corriere::application::Application;
use corriere::config::Document;
use corriere::prelude::*;

use crate::texts;

const SECRET: &str = "hun${ter2?a=b";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    #[serde(default)]
    _port: u16,
    #[serde(default)]
    _mode: Option<Mode>,
    #[serde(default)]
    _short: Short,
    #[serde(default)]
    _flag: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Plain,
}

/// A type that quotes what it refuses.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "String")]
struct Short;

impl TryFrom<String> for Short {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Err(format!("`{text}` is too long"))
    }
}

/// A constructor takes the login apart, but never gets that far.
#[derive(Debug)]
struct Server;

#[corriere::bean(type = "secrets_server")]
impl Server {
    fn new(_login: Login) -> Self {
        Self
    }
}

#[jms_listener(queue = "orders")]
async fn on_secret_order(text: String) -> String {
    text
}

fn document(text: &str, environment: &[(&str, &str)]) -> Document {
    let document = Document::from_text("config.toml", text).unwrap();
    document.with_environment(environment.iter().copied())
}

/// What the start of an application says, which must not be the secret.
async fn told(text: &str, environment: &[(&str, &str)]) -> Vec<String> {
    let application =
        Application::from_document(document(text, environment)).listeners([on_secret_order::DEF]);
    let error = application.start().await.unwrap_err();
    let Error::Config(config) = &error else { panic!("{error}") };
    let shown = format!("{error} {error:?} {config:?}");
    assert!(!shown.contains("hun") && !shown.contains("ter2"), "{shown}");
    texts(config)
}

const FACTORY: &str = "[connection_factories.main]\nurl = \"tcp://127.0.0.1:1\"\n";

#[tokio::test]
async fn a_value_from_the_environment_is_never_shown_only_its_variable() {
    let cases = [
        ("[broker]\nsend_deadline = ", "`broker.send_deadline`", "a duration such as"),
        ("[broker]\nname = ", "`broker.name`", "a name of letters"),
        ("[broker.redelivery]\nback_off = ", "`broker.redelivery.back_off`", "a factor from 1 up"),
        ("[connection_factories.other]\nurl = ", "`connection_factories.other.url`", "the URL of a broker"),
        (
            "[destinations]\nmain.queue = ",
            "`destinations.main.queue`",
            "the physical name of a queue or a topic",
        ),
        ("[templates.t]\npriority = ", "`templates.t.priority`", "a whole number from 0 to 9"),
        (
            "[templates.t]\nmessage_converter = ",
            "`templates.t.message_converter`",
            "the name of a message converter; ",
        ),
        (
            "[templates.t]\nconnection_factory = ",
            "`templates.t.connection_factory`",
            "the name of a connection factory; ",
        ),
        (
            "[templates.t]\ndefault_destination = ",
            "`templates.t.default_destination`",
            "the name of a destination",
        ),
        (
            "[message_converters.m]\ntype = ",
            "`message_converters.m.type`",
            "the name of a message converter type; ",
        ),
        (
            "[listeners.on_secret_order]\ncontainer = ",
            "`listeners.on_secret_order.container`",
            "the name of a listener container; ",
        ),
        (
            "[listeners.on_secret_order]\nconcurrency = ",
            "`listeners.on_secret_order.concurrency`",
            "a range of workers",
        ),
        (
            "[listeners.on_secret_order]\nsend_to = ",
            "`listeners.on_secret_order.send_to`",
            "the name of a destination",
        ),
        ("[beans.b]\ntype = ", "`beans.b.type`", "the name of a bean type; "),
        ("broker = ", "`broker`", "a table"),
    ];
    for (text, key, expected) in cases {
        let environment = [("PW", SECRET), ("USER", "me")];
        // Before the factory, as `broker = …` belongs to no table.
        let whole = told(&format!("{text}\"${{env:PW}}\"\n{FACTORY}"), &environment).await;
        let start = format!("{key} (config.toml:");
        let is = "is made of what the environment variable `PW` holds; expected ";
        let found = whole.iter().find(|error| error.starts_with(&start) && error.contains(is));
        assert!(found.is_some_and(|error| error.contains(&format!("{is}{expected}"))), "{text}: {whole:?}");

        let within = told(&format!("{text}\"a ${{env:USER}} ${{env:PW}}\"\n{FACTORY}"), &environment).await;
        assert!(
            within.iter().any(|error| {
                error.starts_with(&start)
                    && error
                        .contains("is made of what the environment variable `PW` and the environment variable `USER` hold; expected ")
            }),
            "{text}: {within:?}"
        );
    }
}

#[tokio::test]
async fn a_key_that_stands_for_a_secret_is_as_secret() {
    let nested =
        "[broker]\nname = \"${beans.b.password}\"\n[beans.b]\ntype = \"secrets_server\"\npassword = \"\"";
    let nested = told(&format!("{FACTORY}{nested}"), &[("CORRIERE__BEANS__B__PASSWORD", SECRET)]).await;
    assert!(
        nested.iter().any(|error| error
            .contains("is made of what the environment variable `CORRIERE__BEANS__B__PASSWORD` holds")),
        "{nested:?}"
    );
}

#[tokio::test]
async fn an_option_of_a_url_is_not_shown_with_the_password_beside_it() {
    let text = "[connection_factories.main]\nurl = \"vm://x?jms.password=${env:PW}&jms.sendTimeout=5s\"";
    assert_eq!(
        told(text, &[("PW", "hunter2")]).await,
        [
            "`connection_factories.main.url` (config.toml:2:38) is made of what the environment variable `PW` holds; \
          expected the URL of a broker, such as \"vm://local\", whose option `jms.sendTimeout` is a number of milliseconds"
        ]
    );
    // The password itself becomes an option.
    told(text, &[("PW", "a&hunter2=b")]).await;
}

#[tokio::test]
async fn what_is_wrong_with_a_beans_settings_is_said_without_its_values() {
    let cases = [
        ("_port = \"many\"", "`_port` is a text; expected a whole number, 0 or more (u16)"),
        (
            "_port = \"${env:PW}\"",
            "`_port` is made of what the environment variable `PW` holds; expected a whole number, 0 or more (u16)",
        ),
        (
            "_port = 70000",
            "`_port` is a whole number that does not fit; expected a whole number, 0 or more (u16)",
        ),
        ("_mode = \"odd\"", "`_mode` is none of those that there are; expected `plain`"),
        (
            "_mode = \"${env:PW}\"",
            "`_mode` is made of what the environment variable `PW` holds; expected `plain`",
        ),
        ("_flag = \"perhaps\"", "`_flag` is a text; expected true or false"),
        (
            "_short = \"${env:PW}\"",
            "`_short` is made of what the environment variable `PW` holds; expected something else, which cannot be shown, \
             as it could show the value",
        ),
        (
            "other = \"${env:PW}\"",
            "the key `other` is not known; expected `_port` or `_mode` or `_short` or `_flag`",
        ),
    ];
    for (line, expected) in cases {
        let text = format!("{FACTORY}[beans.b]\ntype = \"secrets_server\"\n{line}");
        let key = line.split(' ').next().unwrap();
        let column = if key == "other" { 1 } else { key.len() + 4 };
        let place = format!("`beans.b.{key}` (config.toml:5:{column})");
        assert_eq!(
            told(&text, &[("PW", SECRET)]).await,
            [format!("{place}: the bean could not be made: {expected}")]
        );
    }
}

#[test]
fn nothing_shows_a_value_for_debugging() {
    let text = "[connection_factories.main]\nurl = \"vm://x?jms.password=hunter2\"\n[beans.b]\ntype = \"secrets_server\"\n\
                password = \"${env:PW}\"\n[templates.t]\nmessage_converter = \"hunter2\"";
    let mut document = document(text, &[("PW", "hunter2"), ("CORRIERE__BEANS__B__OTHER", "hunter2")]);
    document.set("beans.b.third", "hunter2");
    let read = document.read(&[]).unwrap();
    let builder = Application::from_document(document.clone()).set("beans.b.fourth", "hunter2");
    let test = TestApp::new().config(text).set("beans.b.fifth", "hunter2");
    let shown = format!("{document:?} {read:?} {builder:?} {test:?} {:?}", read.beans.get("b").unwrap());
    assert!(!shown.contains("hunter2"), "{shown}");
    for name in
        ["config.toml", "beans.b.password", "CORRIERE__BEANS__B__OTHER", "beans.b.third", "fourth", "fifth"]
    {
        assert!(shown.contains(name), "{name}: {shown}");
    }
    assert!(read.beans.get("b").unwrap().settings.clone().none().is_err());
}

#[tokio::test]
async fn numbers_and_truth_values_come_as_text_too() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Settings {
        port: u16,
        rate: f32,
        secure: bool,
        large: u128,
        small: i8,
        name: String,
        list: Vec<u8>,
        inner: std::collections::BTreeMap<String, Option<u32>>,
    }
    let text = "[beans.b]\ntype = \"x\"\nport = \"${env:N}\"\nrate = \"1.5\"\nsecure = \"true\"\nlarge = \"${env:N}\"\n\
                small = -3\nname = 5\nlist = [1, \"${env:N}\"]\ninner = { a = \"7\", b = 8 }";
    let read = document(text, &[("N", "25")]).read(&[]).unwrap();
    let settings: Settings = read.beans.get("b").unwrap().settings.clone().read().unwrap();
    let inner = [("a".to_owned(), Some(7)), ("b".to_owned(), Some(8))].into();
    let expected = Settings {
        port: 25,
        rate: 1.5,
        secure: true,
        large: 25,
        small: -3,
        name: "5".to_owned(),
        list: vec![1, 25],
        inner,
    };
    assert_eq!(settings, expected);
}

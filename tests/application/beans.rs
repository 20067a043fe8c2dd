//! Beans of the configuration.

use std::collections::HashMap;
use std::sync::Mutex;

use corriere::beans::Bean;
use corriere::prelude::*;

use crate::{application, refused};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MailerConfig {
    url: String,
    #[serde(default)]
    retries: u32,
}

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no URL of a mail server")]
struct MailerError(String);

#[derive(Debug)]
struct Mailer {
    url: String,
    retries: u32,
}

#[corriere::bean(type = "mailer")]
impl Mailer {
    fn new(config: MailerConfig) -> Result<Self, MailerError> {
        match config.url.starts_with("smtp://") {
            true => Ok(Self { url: config.url, retries: config.retries }),
            false => Err(MailerError(config.url)),
        }
    }
}

#[derive(Debug)]
struct Counter;

#[corriere::bean(type = "counter")]
impl Counter {
    fn new() -> Self {
        Self
    }
}

static MADE: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct Noted;

#[corriere::bean(type = "noted")]
impl Noted {
    fn new(mut settings: HashMap<String, String>) -> Self {
        MADE.lock().unwrap().extend(settings.remove("name"));
        Self
    }
}

#[tokio::test]
async fn a_bean_is_made_of_its_table() {
    let app = application(
        "[beans.mailer]\ntype = \"mailer\"\nurl = \"smtp://${env:SMTP:-localhost}\"\nretries = 3",
    )
    .listeners([])
    .start()
    .await
    .unwrap();
    let mailer: Bean<Mailer> = app.bean("mailer").unwrap();
    assert_eq!((mailer.url.as_str(), mailer.retries), ("smtp://localhost", 3));
    assert_eq!(app.beans().get::<Mailer>().unwrap().retries, 3);
}

#[tokio::test]
async fn beans_are_made_in_the_order_of_the_file() {
    let text: String = ["zebra", "apple", "mango"]
        .map(|name| format!("[beans.{name}]\ntype = \"noted\"\nname = \"{name}\"\n"))
        .concat();
    application(&text).listeners([]).start().await.unwrap();
    assert_eq!(*MADE.lock().unwrap(), ["zebra", "apple", "mango"]);
}

#[tokio::test]
async fn what_keeps_a_bean_from_being_made_stops_the_start() {
    let cases = [
        (
            "[beans.m]\ntype = \"mailr\"",
            "`beans.m.type` (config.toml:2:8): there is no bean type `mailr`; did you mean `mailer`?; there is: `archive`, \
             `cautious`, `counter`, `dictionary`, `first_half`, `fragile`, `mailer`, `noted`, `second_half`, `shouting`, \
             `slams`, `station`, `stubborn`, `tracked`, `twin`, `upper`",
        ),
        (
            "[beans.m]\ntype = \"mailer\"\nurl = \"http://x\"",
            "`beans.m` (config.toml:1:1): the bean could not be made: `http://x` is no URL of a mail server",
        ),
        (
            "[beans.m]\ntype = \"mailer\"\nurl = \"smtp://x\"\nretires = 3",
            "`beans.m.retires` (config.toml:4:1): the bean could not be made: the key `retires` is not known; did you mean \
             `retries`?; expected `url` or `retries`",
        ),
        (
            "[beans.m]\ntype = \"mailer\"\nurl = \"smtp://x\"\nretries = \"many\"",
            "`beans.m.retries` (config.toml:4:11): the bean could not be made: `retries` is a text; expected a whole number, 0 \
             or more (u32)",
        ),
        (
            "[beans.m]\ntype = \"mailer\"",
            "`beans.m` (config.toml:1:1): the bean could not be made: the key `url` is missing",
        ),
        (
            "[beans.c]\ntype = \"counter\"\nstart = 5",
            "`beans.c.start` (config.toml:3:1): the bean could not be made: the key `start` is not known: this type takes no \
             settings",
        ),
    ];
    for (text, expected) in cases {
        let told = refused(application(text).listeners([])).await;
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0], expected);
    }
}

mod one {
    #[derive(Debug)]
    pub(super) struct Twin;

    #[corriere::bean(type = "twin")]
    impl Twin {
        fn new() -> Self {
            Self
        }
    }
}

mod other {
    #[derive(Debug)]
    pub(super) struct Twin;

    #[corriere::bean(type = "twin")]
    impl Twin {
        fn new() -> Self {
            Self
        }
    }
}

/// Which of them it is would be the linker's choice.
#[tokio::test]
async fn a_type_name_that_two_bean_types_have_stops_the_start() {
    let told = refused(application("[beans.t]\ntype = \"twin\"").listeners([])).await;
    assert_eq!(
        told,
        ["`beans.t.type` (config.toml:2:8): the bean type `twin` is more than one: \
          `application::beans::one::Twin` and `application::beans::other::Twin`; give each a name of its own"]
    );
}

#[jms_listener(queue = "orders")]
async fn on_counted(_order: String, _counter: Bean<Counter>) {}

const FACTORY: &str = "[connection_factories.main]\nurl = \"tcp://127.0.0.1:1\"\n";

#[tokio::test]
async fn a_listener_whose_bean_is_missing_stops_the_start() {
    let text = format!("{FACTORY}[beans.mailer]\ntype = \"mailer\"\nurl = \"smtp://x\"");
    let told = refused(application(&text).listeners([on_counted::DEF])).await;
    assert_eq!(
        told,
        [
            "listener `on_counted` needs a bean of the type `application::beans::Counter` for its argument `counter`, and \
          there is none; add `[beans.NAME]` with `type = \"counter\"`"
        ]
    );
}

#[tokio::test]
async fn a_listener_whose_bean_could_be_either_of_two_stops_the_start() {
    let text = format!("{FACTORY}[beans.one]\ntype = \"counter\"\n[beans.two]\ntype = \"counter\"");
    let told = refused(application(&text).listeners([on_counted::DEF])).await;
    assert_eq!(
        told,
        ["listener `on_counted`: its argument `counter` could be any of 2 beans of the type \
          `application::beans::Counter`: `one`, `two`; name the argument after one of them, or put `#[bean(\"one\")]` on \
          it"]
    );
}

#[derive(Debug, Deserialize)]
struct FragileConfig {
    breaks: String,
}

/// Panics while it is made or while it is dropped.
#[derive(Debug)]
struct Fragile(String);

#[corriere::bean(type = "fragile")]
impl Fragile {
    fn new(config: FragileConfig) -> Self {
        assert!(config.breaks != "at once", "made of glass");
        Self(config.breaks)
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(self.0 != "at the end", "dropped");
    }
}

#[jms_listener(queue = "glass")]
async fn on_glass(_text: String, _fragile: Bean<Fragile>) {}

#[tokio::test]
async fn a_bean_that_panics_when_it_is_made_stops_the_start_and_is_not_missed_a_second_time() {
    let text = "[broker]\nname = \"beans-fragile\"\n[beans.f]\ntype = \"fragile\"\nbreaks = \"at once\"";
    let told = refused(application(text).listeners([on_glass::DEF])).await;
    assert_eq!(
        told,
        ["`beans.f` (config.toml:3:1): the bean could not be made: the constructor panicked: made of glass"]
    );
}

#[tokio::test]
async fn a_bean_that_panics_when_it_is_dropped_keeps_no_application_from_stopping() {
    let text = "[beans.f]\ntype = \"fragile\"\nbreaks = \"at the end\"\n[beans.c]\ntype = \"counter\"";
    let app = application(text).listeners([]).start().await.unwrap();
    assert!(app.stop().await.abandoned.is_empty());
}

#[jms_listener(queue = "asked", send_to = "answers")]
async fn answers_nothing(_text: String) -> Result<(), ListenerError> {
    Ok(())
}

#[tokio::test]
async fn a_listener_that_returns_nothing_cannot_send_it_anywhere() {
    let told =
        refused(application("[broker]\nname = \"beans-nothing\"").listeners([answers_nothing::DEF])).await;
    let start = format!("`#[jms_listener] answers_nothing: send_to` ({}:", file!());
    let end =
        ") is \"answers\"; expected nothing: the listener's function returns nothing that could be sent";
    assert!(told.len() == 1 && told[0].starts_with(&start) && told[0].ends_with(end), "{told:?}");
}

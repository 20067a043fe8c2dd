//! A table of configurations, right and wrong, with what is said of each (case C-37 among them).
//!
//! `cases/*.toml` has the configurations and `snapshots/` what is said. A case begins with `### its name`. In it, a line
//! `#$ NAME=VALUE` sets an environment variable, and `#> file` begins another file beside `config.toml`. To accept what is
//! said now, run this test with `INSTA_UPDATE=always`, and read the difference.

use std::fmt::Write as _;
use std::path::Path;

use corriere::application::Application;
use corriere::config::{ConfigError, Document};
use corriere::prelude::*;
use tokio::sync::Mutex;

#[jms_listener(queue = "orders", send_to = "emails")]
async fn on_order(order: String) -> String {
    order
}

#[jms_listener(topic = "prices")]
async fn on_price(_price: String) {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MailerSettings {
    url: String,
    #[serde(default)]
    password: Option<String>,
    #[serde(default)]
    port: Option<u16>,
    #[serde(default)]
    #[expect(dead_code, reason = "a table within the configuration")]
    limits: Option<Limits>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    #[expect(dead_code, reason = "a setting within a table")]
    per_day: u16,
}

#[derive(Debug)]
struct Mailer(#[expect(dead_code, reason = "a bean for configurations to name")] MailerSettings);

#[corriere::bean(type = "table_mailer")]
impl Mailer {
    fn new(settings: MailerSettings) -> Result<Self, std::io::Error> {
        // What a constructor refuses is said as well.
        match (&*settings.url, &settings.password, settings.port) {
            ("refused", _, _) => Err(std::io::Error::other("nobody listens there")),
            _ => Ok(Self(settings)),
        }
    }
}

#[derive(Debug)]
struct Pool;

#[corriere::bean(type = "table_pool")]
impl Pool {
    fn new() -> Self {
        Self
    }
}

#[derive(Debug)]
struct Store;

#[corriere::bean(type = "table_store")]
impl Store {
    fn new(_pool: Bean<Pool>) -> Self {
        Self
    }
}

#[derive(Debug)]
struct Hen;

#[corriere::bean(type = "table_hen")]
impl Hen {
    fn new(_egg: Bean<Egg>) -> Self {
        Self
    }
}

#[derive(Debug)]
struct Egg;

#[corriere::bean(type = "table_egg")]
impl Egg {
    fn new(_hen: Bean<Hen>) -> Self {
        Self
    }
}

/// A case of the table.
struct Case<'a> {
    name: &'a str,
    environment: Vec<(&'a str, &'a str)>,
    files: Vec<(&'a str, String)>,
}

fn cases(text: &str) -> Vec<Case<'_>> {
    let mut cases = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("### ") {
            let files = vec![("config.toml", String::new())];
            cases.push(Case { name, environment: Vec::new(), files });
            continue;
        }
        let Some(case) = cases.last_mut() else { continue };
        if let Some((variable, value)) = line.strip_prefix("#$ ").and_then(|line| line.split_once('=')) {
            case.environment.push((variable, value));
        } else if let Some(file) = line.strip_prefix("#> ") {
            case.files.push((file, String::new()));
        } else if let Some((_, file)) = case.files.last_mut() {
            file.push_str(line);
            file.push('\n');
        }
    }
    cases
}

/// What is said of a case when an application with it is started.
async fn told(case: &Case<'_>) -> String {
    // Most of them start a broker of the same name.
    static ONE: Mutex<()> = Mutex::const_new(());
    let _one = ONE.lock().await;
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in &case.files {
        std::fs::write(directory.path().join(name), text.trim_matches('\n')).unwrap();
    }
    let told = match start(case, directory.path()).await {
        Ok(()) => "right".to_owned(),
        Err(error) => error.to_string(),
    };
    let directory = format!("{}/", directory.path().display());
    // Where the attributes above stand is nothing to write down.
    let mut told = told.replace(&directory, "");
    while let Some(start) = told.find(concat!(file!(), ":")) {
        let end = told[start..].find(')').map_or(told.len(), |end| start + end);
        told.replace_range(start..end, "the program's source");
    }
    told
}

async fn start(case: &Case<'_>, directory: &Path) -> Result<(), Error> {
    let document = Document::from_file_in(directory.join("config.toml"), case.environment.iter().copied())
        .map_err(|error: ConfigError| Error::from(error))?;
    let application = Application::from_document(document);
    let listeners = [on_order::DEF, on_price::DEF];
    application.listeners(listeners).start().await?.stop().await;
    Ok(())
}

async fn check(area: &str, text: &str) {
    let mut whole = String::new();
    for case in cases(text) {
        writeln!(whole, "### {}", case.name).unwrap();
        for (variable, value) in &case.environment {
            writeln!(whole, "$ {variable}={value}").unwrap();
        }
        for (name, text) in &case.files {
            let text = text.trim_matches('\n').replace('\n', "\n  ");
            let is_main = *name == "config.toml";
            if !(is_main && text.is_empty()) {
                writeln!(whole, "{name}:\n  {text}").unwrap();
            }
        }
        writeln!(whole, "--> {}\n", told(&case).await.replace('\n', "\n    ")).unwrap();
    }
    insta::with_settings!({ snapshot_path => "snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(area, whole);
    });
}

macro_rules! areas {
    ($($area:ident)*) => {$(
        #[tokio::test]
        async fn $area() {
            check(stringify!($area), include_str!(concat!("cases/", stringify!($area), ".toml"))).await;
        }
    )*};
}

areas! { beans broker destinations environment factories files listeners placeholders secrets templates }

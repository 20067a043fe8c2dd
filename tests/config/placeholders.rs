//! Placeholders in texts.

use corriere::config::Document;

use crate::texts;

fn broker_name(text: &str) -> Result<String, Vec<String>> {
    let document = Document::from_text("config.toml", text).unwrap();
    let document = document.with_environment([("HOST", "mail"), ("EMPTY", ""), ("TRICK", "${broker.name}")]);
    document.read(&[]).map(|read| read.broker.unwrap().name).map_err(|error| texts(&error))
}

fn filled(name: &str) -> String {
    broker_name(&format!("[broker]\nname = '{name}'\n[connection_factories.main]\nurl = \"vm://x\""))
        .unwrap_or_else(|errors| panic!("{name}: {errors:?}"))
}

fn refused(name: &str) -> Vec<String> {
    broker_name(&format!("[broker]\nname = '{name}'")).unwrap_err()
}

#[test]
fn placeholders_are_filled() {
    let cases = [
        ("${env:HOST}", "mail"),
        ("smtp://${env:HOST}:${env:PORT:-2525}/", "smtp://mail:2525/"),
        ("${env:NONE:-smtp://127.0.0.1:2525}", "smtp://127.0.0.1:2525"),
        ("${connection_factories.main.url}", "vm://x"),
        ("${no.such.key:-fallback}", "fallback"),
        ("${no.such.key:-${env:HOST}}", "mail"),
        ("[${env:EMPTY}]", "[]"),
        ("[${env:NONE:-}]", "[]"),
        ("costs $5 {x}", "costs $5 {x}"),
        ("$${env:HOST}", "${env:HOST}"),
    ];
    for (written, expected) in cases {
        assert_eq!(filled(written), expected, "{written}");
    }
}

/// What an environment variable holds is data, not configuration.
#[test]
fn what_a_variable_holds_is_not_filled_again() {
    assert_eq!(filled("${env:TRICK}"), "${broker.name}");
}

#[test]
fn placeholders_that_cannot_be_filled_are_refused() {
    let cases = [
        ("${env:NONE}", "`${env:NONE}` has no default, and the environment has no variable `NONE`"),
        ("${no.such.key}", "`${no.such.key}` has no default, and the configuration has no key `no.such.key`"),
        ("${env:HOST", "`${env:HOST` has no closing brace"),
        ("${file:/etc/secret}", "`${file:/etc/secret}` reads a file, which is not available yet"),
        ("${broker}", "`${broker}` stands for something that is no text or number"),
        ("${broker.name}", "`${broker.name}` stands for itself, through `broker.name`"),
    ];
    for (written, expected) in cases {
        assert_eq!(
            refused(written),
            [format!("`broker.name` (config.toml, line 2): the placeholder {expected}")],
            "{written}"
        );
    }
}

#[test]
fn a_circle_of_placeholders_is_refused() {
    let errors = broker_name(
        "[broker]\nname = '${templates.t.connection_factory}'\n[templates.t]\nconnection_factory = '${broker.name}'",
    )
    .unwrap_err();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors.iter().all(|error| error.contains("stands for itself")), "{errors:?}");
}

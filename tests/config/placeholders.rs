//! Placeholders in texts.

use corriere::config::Document;

use crate::texts;

fn filled_in(text: &str) -> Result<String, Vec<String>> {
    let document = Document::from_text("config.toml", text).unwrap();
    let document = document.with_environment([
        ("HOST", "mail"),
        ("EMPTY", ""),
        ("TRICK", "${connection_factories.main.url}"),
    ]);
    let read = document.read(&[]).map_err(|error| texts(&error))?;
    Ok(read.templates.get("a.b").unwrap().message_converter.clone().unwrap().value)
}

fn filled(name: &str) -> String {
    filled_in(&format!(
        "[templates.'a.b']\nmessage_converter = '{name}'\n[connection_factories.main]\nurl = \"vm://x\""
    ))
    .unwrap_or_else(|errors| panic!("{name}: {errors:?}"))
}

fn refused(name: &str) -> Vec<String> {
    filled_in(&format!("[templates.'a.b']\nmessage_converter = '{name}'")).unwrap_err()
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
    assert_eq!(filled("${env:TRICK}"), "${connection_factories.main.url}");
    let document =
        Document::from_text("config.toml", "[beans.m]\ntype = \"m\"\nurl = '${beans.m.type}'").unwrap();
    for value in ["hun${ter2", "${env:HOME}", "$${", "}"] {
        let read = document
            .clone()
            .with_environment([("CORRIERE__BEANS__M__TYPE", value), ("HOME", "/")])
            .read(&[])
            .unwrap_or_else(|error| panic!("{error}"));
        let bean = read.beans.get("m").unwrap();
        assert_eq!(bean.bean_type.value, value);
        let settings = bean.settings.clone().read::<std::collections::HashMap<String, String>>().unwrap();
        assert_eq!(settings["url"], value);
    }
}

#[test]
fn placeholders_that_cannot_be_filled_are_refused() {
    let cases = [
        ("${env:NONE}", "`${env:NONE}` has no default, and the environment has no variable `NONE`"),
        ("${no.such.key}", "`${no.such.key}` has no default, and the configuration has no key `no.such.key`"),
        ("${env:HOST", "`${env:HOST` has no closing brace"),
        (
            "${file:/no/such/secret}",
            "`${file:/no/such/secret}` has no default, and there is no file `/no/such/secret`",
        ),
        ("${templates}", "`${templates}` stands for something that is no text or number"),
        (
            "${templates.\"a.b\".message_converter}",
            "`${templates.\"a.b\".message_converter}` stands for itself, through `templates.\"a.b\".message_converter`",
        ),
        // Another way to write the same key.
        (
            "${\"templates\" . \"a.b\".\"message_converter\"}",
            "`${\"templates\" . \"a.b\".\"message_converter\"}` stands for itself, through \
             `templates.\"a.b\".message_converter`",
        ),
        (
            "${a..b}",
            "`${a..b}` is neither `${env:NAME}`, `${file:PATH}` nor the name of a key, `${table.key}`",
        ),
    ];
    for (written, expected) in cases {
        assert_eq!(
            refused(written),
            [format!("`templates.\"a.b\".message_converter` (config.toml:2:22): the placeholder {expected}")],
            "{written}"
        );
    }
}

#[test]
fn a_circle_of_placeholders_is_refused() {
    let errors = filled_in(
        "[templates.a]\nmessage_converter = '${templates.b.message_converter}'\n[templates.b]\nmessage_converter = \
         '${templates.a.message_converter}'",
    )
    .unwrap_err();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors.iter().all(|error| error.contains("stands for itself")), "{errors:?}");
}

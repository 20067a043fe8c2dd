//! What the table of configurations cannot show of how mistakes are told.

use corriere::config::{ConfigError, Document};

use crate::read;

#[test]
fn a_broker_may_have_every_name_that_its_url_and_its_directory_can_have() {
    for name in ["a", "-", ".a", "shop.eu-1_b"] {
        assert_eq!(read(&format!("[broker]\nname = \"{name}\"")).unwrap().broker.unwrap().name, name);
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let error =
        read("[broker]\nnam = \"x\"\nmemory_limit = \"?\"\n[templates.t]\npriority = 10").unwrap_err();
    assert_eq!(error.each().len(), 3);
    assert!(matches!(error, ConfigError::Several(_)));
    let text = error.to_string();
    assert!(
        text.starts_with("3 things are wrong with the configuration:\n- `broker.nam` (config.toml:2:1)"),
        "{text}"
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Document::from_file("no/such/config.toml").unwrap_err().to_string();
    let whole = std::env::current_dir().unwrap().join("no/such/config.toml");
    assert!(
        error.starts_with(&format!("the configuration `{}` cannot be read: ", whole.display())),
        "{error}"
    );
}

#[test]
fn a_file_that_is_no_text_is_refused_with_the_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.toml");
    std::fs::write(&path, b"[broker]\nname = \"K\xf6ln\"\n").unwrap();
    let error = Document::from_file(&path).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{}:2:10: the file is not UTF-8 from here on; expected TOML, which is written in UTF-8",
            path.display()
        )
    );
    assert!(matches!(error, ConfigError::NotUtf8 { .. }));
}

#[test]
fn a_byte_order_mark_is_no_mistake() {
    let read = Document::from_text("config.toml", "\u{feff}[broker]\nname = \"a\"").unwrap().read(&[]);
    assert_eq!(read.unwrap().broker.unwrap().name, "a");
}

#[test]
fn profiles_without_a_file_are_refused() {
    let document = Document::from_text("config.toml", "[broker]").unwrap();
    let error = document.with_environment([("CORRIERE_PROFILE", "prod")]).read(&[]).unwrap_err();
    assert!(matches!(error, ConfigError::ProfileWithoutFile), "{error}");
}

/// C-12: what the types of the API cannot say, a file can.
#[test]
fn a_priority_or_a_delivery_mode_that_jms_does_not_have_is_refused_with_what_there_is() {
    for (key, value, there_is) in [
        ("priority", "10", "0 to 9"),
        ("priority", "-1", "0 to 9"),
        ("delivery_mode", "3", "\"persistent\""),
        ("delivery_mode", "\"3\"", "\"persistent\""),
    ] {
        let error = read(&format!("[broker]\n[templates.t]\n{key} = {value}")).unwrap_err().to_string();
        assert!(error.starts_with(&format!("`templates.t.{key}` (config.toml:3:")), "{error}");
        assert!(error.contains(there_is), "{error}");
    }
}

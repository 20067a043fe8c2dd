//! The tables of keys in `docs/configuration.md`.

use std::fmt::Write;

use super::kind::size;
use super::{KeySchema, Kind, table, table_names};

const BEGIN: &str = "<!-- keys: ";
const END: &str = "<!-- end of keys -->";

/// The tables that there are, by what their marks in the document name them: `broker`, `broker.redelivery`.
pub(super) fn tables() -> Vec<(String, &'static [KeySchema])> {
    let mut all = Vec::new();
    for table in table_names().into_iter().filter_map(table) {
        all.push((table.name.to_owned(), table.keys));
        for key in table.keys {
            if let Kind::Table(keys) | Kind::Tables(keys) = key.kind {
                all.push((format!("{}.{}", table.name, key.name), keys));
            }
        }
    }
    all
}

/// The document with the tables between its marks as the schema has them; the names of those marks too.
pub(super) fn rendered(document: &str) -> (String, Vec<String>) {
    let (mut out, mut names, mut rest) = (String::new(), Vec::new(), document);
    while let Some((before, behind)) = rest.split_once(BEGIN) {
        let (name, behind) = behind.split_once(" -->\n").expect("a mark ends on its line");
        let (_, behind) = behind.split_once(END).expect("what begins, ends");
        let table = if name == "preset activemq" { preset() } else { of_keys(name) };
        write!(out, "{before}{BEGIN}{name} -->\n{table}{END}").expect("a text has room");
        names.push(name.to_owned());
        rest = behind;
    }
    (out + rest, names)
}

fn of_keys(name: &str) -> String {
    let tables = tables();
    let found = tables.iter().find(|(table, _)| table == name);
    let (_, keys) =
        found.unwrap_or_else(|| panic!("docs/configuration.md has a mark for `{name}`, and no such table"));
    let mut text = "| key | type | default | `activemq` | Spring Boot, ActiveMQ | meaning |\n".to_owned();
    text.push_str("| --- | --- | --- | --- | --- | --- |\n");
    for key in *keys {
        let default = if key.is_required { "required".to_owned() } else { code(key.default) };
        let meaning = match key.kind {
            Kind::WithoutEffect(reason) => format!("No effect: {reason}."),
            _ => key.meaning.to_owned(),
        };
        text.push_str(&row(&[
            code(Some(key.name)),
            kind(key.kind),
            default,
            code(key.activemq),
            key.answers.unwrap_or_default().to_owned(),
            meaning,
        ]));
    }
    text
}

/// What the preset sets.
fn preset() -> String {
    let mut text = "| key | without it | with it |\n| --- | --- | --- |\n".to_owned();
    for (table, keys) in tables() {
        let in_it = keys.iter().filter(|key| key.activemq.is_some());
        for key in in_it {
            let name = format!("{table}.{}", key.name).replacen("factories.", "factories.NAME.", 1);
            text.push_str(&row(&[code(Some(&name)), code(key.default), code(key.activemq)]));
        }
    }
    text
}

fn row(cells: &[String]) -> String {
    let mut row = String::new();
    for cell in cells {
        let cell = cell.replace('|', "\\|");
        row.push_str("| ");
        row.push_str(&cell);
        row.push_str(if cell.is_empty() { "" } else { " " });
    }
    row + "|\n"
}

fn code(text: Option<&str>) -> String {
    text.map(|text| format!("`{text}`")).unwrap_or_default()
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Text(_) => "text".to_owned(),
        Kind::Boolean => "boolean".to_owned(),
        Kind::Number { least, most } if most < i64::from(u16::MAX) => {
            format!("whole number, {least} to {most}")
        }
        Kind::Number { least, .. } => format!("whole number from {least}"),
        Kind::Factor => "number from 1".to_owned(),
        Kind::Duration { may_be_zero: true } => "duration".to_owned(),
        Kind::Duration { may_be_zero: false } => "duration above 0".to_owned(),
        Kind::DurationOrMilliseconds { .. } => "duration, or milliseconds".to_owned(),
        Kind::Size { least, most: Some(most) } => {
            format!("size, `\"{}\"` to `\"{}\"`", size(least), size(most))
        }
        Kind::Size { least, most: None } if least > 1 => format!("size from `\"{}\"`", size(least)),
        Kind::Size { .. } => "size".to_owned(),
        Kind::Words(words) => {
            let words: Vec<_> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
            words.join(", ")
        }
        Kind::Concurrency => "range of workers".to_owned(),
        Kind::Name(what) => format!("name of {what}"),
        Kind::List(_) => "list of texts".to_owned(),
        Kind::Tables(_) => "tables by name".to_owned(),
        Kind::Table(_) => "table".to_owned(),
        Kind::WithoutEffect(_) => "anything".to_owned(),
    }
}

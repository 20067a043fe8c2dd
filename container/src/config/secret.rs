//! What may be a secret, so that no error, log or listing shows it.
//!
//! A key or a variable is known by its name, also where that is misspelt. What stands in a file that a placeholder names is
//! always one, as that is what such files are for, and so is what the environment brings to a user's own bean, of which only
//! the bean knows what it is.

use std::borrow::Cow;
use std::ops::Range;

use config::{Value, ValueKind};

use super::origin::{self, Base, Filling};

/// What is shown instead of a secret.
pub(crate) const MASK: &str = "***";

/// Words that make the name of a key or a variable that of a secret, wherever in it they stand.
const WORDS: [&str; 6] = ["password", "passphrase", "passwd", "secret", "token", "credential"];
/// As [`WORDS`], where they are words of their own.
const SHORT_WORDS: [&str; 5] = ["pass", "pw", "pwd", "pin", "key"];

/// Whether a key or a variable of this name holds a secret. Who misspells one does not want it shown either.
pub(crate) fn is_name(name: &str) -> bool {
    let lower = name.to_lowercase();
    if WORDS.iter().any(|word| lower.contains(word)) {
        return true;
    }
    let words = words(name);
    words.iter().map(String::as_str).any(|word| {
        // Alone it may be the key of anything: of a map, of a message.
        let is_short = SHORT_WORDS.contains(&word) && (word != "key" || words.len() > 1);
        let is_like = |known: &&str| {
            let slips = if known.len() > 6 { 2 } else { 1 };
            word.len() + slips >= known.len() && strsim::osa_distance(word, known) <= slips
        };
        is_short || WORDS.iter().any(is_like)
    })
}

/// The words of a name, in small letters: `apiKey` has two.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for character in name.chars() {
        if !character.is_alphanumeric() || character.is_uppercase() && was_lower {
            words.push(String::new());
        }
        if character.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(character.to_lowercase());
        }
        was_lower = character.is_lowercase() || character.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Where a value is a secret, or may be one: what an error says instead of it, to follow "is". A table is shown by its name
/// alone, so it is never one.
///
pub(super) fn hidden(path: &[&str], value: &Value) -> Option<String> {
    if matches!(value.kind, ValueKind::Table(_)) {
        return None;
    }
    let sources = external(value);
    let origin = origin::of(value);
    let is_variable_secret = |name: &str| is_of_a_bean(path) || is_name(name);
    let is_secret = path.iter().skip(1).any(|name| is_name(name))
        || origin.fillings.iter().any(|filling| match filling {
            Filling::Variable(name) => is_variable_secret(name),
            Filling::File(_) => true,
            Filling::Key(key) => is_name(key) || key.starts_with("beans."),
        })
        || match origin.base {
            Base::Variable(name) => is_variable_secret(name),
            Base::Code | Base::File(_) => false,
        }
        || has_secret_item(path, value);
    is_secret.then(|| described(value, &sources).unwrap_or_else(|| format!("`{MASK}`, a secret")))
}

/// Whether a key is for a user's own bean to read.
fn is_of_a_bean(path: &[&str]) -> bool {
    matches!(path, ["beans" | "message_converters", _, key, ..] if *key != "type")
}

fn has_secret_item(path: &[&str], value: &Value) -> bool {
    match &value.kind {
        ValueKind::Array(items) => items.iter().any(|item| match &item.kind {
            ValueKind::Table(_) => has_secret_item(path, item),
            _ => hidden(path, item).is_some(),
        }),
        ValueKind::Table(table) => table.iter().any(|(name, inner)| {
            let path = [path, &[name.as_str()]].concat();
            hidden(&path, inner).is_some() || has_secret_item(&path, inner)
        }),
        _ => false,
    }
}

/// What an error says instead of a value that comes from the environment or a file, wholly or in part, whatever its key.
pub(crate) fn hidden_within(value: &Value) -> Option<String> {
    described(value, &external(value))
}

/// A text without the passwords of a URL.
pub(crate) fn without_passwords(text: &str) -> Cow<'_, str> {
    let passwords = passwords(text);
    if passwords.is_empty() {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    let mut at = 0;
    for password in passwords {
        shown.push_str(&text[at..password.start]);
        shown.push_str(MASK);
        at = password.end;
    }
    shown.push_str(&text[at..]);
    shown.into()
}

/// The passwords of a URL, in their order: that before an `@`, and those of options.
pub(super) fn passwords(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut authorities: Vec<usize> = text.match_indices("://").map(|(at, _)| at + 3).collect();
    if authorities.is_empty() {
        authorities.extend(text.find(':').map(|at| at + 1));
    }
    for (number, start) in authorities.iter().enumerate() {
        // A composite one has commas between its addresses.
        let until =
            authorities.get(number + 1).map_or(text.len(), |next| text[..*next].rfind(',').unwrap_or(*next));
        let address = &text[*start..until.max(*start)];
        let address = address.split(['"', '\'']).next().unwrap_or_default();
        // A password may hold an `@` itself, so the last one counts, and a `?`, so that is no end.
        if let Some(end) = address.rfind('@')
            && let Some(colon) = address[..end].find(':')
        {
            found.push(start + colon + 1..start + end);
        }
    }
    for (equals, _) in text.match_indices('=') {
        let is_no_name = |character: char| !(character.is_alphanumeric() || "_-.".contains(character));
        let name = text[..equals].rsplit(is_no_name).next().unwrap_or_default();
        let start = equals + 1;
        // It may hold whatever else stands in a URL.
        let end = text[start..].find(['&', '"', '\'']).map_or(text.len(), |end| start + end);
        let is_known = found.iter().any(|other: &Range<usize>| start < other.end && other.start < end);
        if is_name(name) && !is_known {
            found.push(start..end);
        }
    }
    found.sort_unstable_by_key(|password| password.start);
    found
}

/// A placeholder in the value of a key, without what it has by default where that is a secret.
pub(super) fn without_default(path: &[String], placeholder: String) -> String {
    if !path.iter().skip(1).any(|name| is_name(name)) || is_reference(&placeholder) {
        return placeholder;
    }
    match placeholder.split_once(":-") {
        Some((name, _)) if is_reference(&format!("{name}}}")) => format!("{name}:-{MASK}}}"),
        _ => format!("${{{MASK}"),
    }
}

/// Whether a text only says where a secret is to be had.
pub(super) fn is_reference(text: &str) -> bool {
    let inner = text.strip_prefix("${").and_then(|inner| inner.strip_suffix('}'));
    inner.is_some_and(|inner| !inner.contains(['{', '}', '$']) && !inner.contains(":-"))
}

/// Something outside of the configuration's own files that is in a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum External<'a> {
    Variable(Cow<'a, str>),
    File(Cow<'a, str>),
}

fn external(value: &Value) -> Vec<External<'_>> {
    let mut sources = Vec::new();
    collect(value, &mut sources);
    sources.sort_unstable();
    sources.dedup();
    sources
}

fn collect<'a>(value: &'a Value, sources: &mut Vec<External<'a>>) {
    if let ValueKind::Table(table) = &value.kind {
        // One that was made for a variable's key has the variable as its origin too, and holds nothing itself.
        for value in table.values() {
            collect(value, sources);
        }
        return;
    }
    let origin = origin::of(value);
    if let Base::Variable(name) = origin.base {
        sources.push(External::Variable(name.into()));
    }
    for filling in origin.fillings {
        match filling {
            Filling::Variable(name) => sources.push(External::Variable(name)),
            Filling::File(path) => sources.push(External::File(path)),
            Filling::Key(_) => {}
        }
    }
    if let ValueKind::Array(items) = &value.kind {
        for item in items {
            collect(item, sources);
        }
    }
}

fn described(value: &Value, sources: &[External<'_>]) -> Option<String> {
    let name = |source: &External<'_>| match source {
        External::Variable(name) => format!("the environment variable `{name}`"),
        External::File(path) => format!("the file `{path}`"),
    };
    let is_whole = matches!(origin::of(value).base, Base::Variable(_));
    match sources {
        [] => None,
        [only] if is_whole => Some(format!("what {} holds", name(only))),
        [only] => Some(format!("made of what {} holds", name(only))),
        several => {
            Some(format!("made of what {} hold", several.iter().map(name).collect::<Vec<_>>().join(" and ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known() {
        for name in [
            "password",
            "jms.password",
            "SMTP_PASSWORD",
            "clientSecret",
            "api_key",
            "access-token",
            "pasword",
            "apiKey",
            "mailPwd",
            "jms.pasword",
            "passwort",
            "SMTP_PW",
            "pin",
            "secrte",
            "credentails",
        ] {
            assert!(is_name(name), "{name}");
        }
        for name in [
            "url",
            "key",
            "keys",
            "monkey",
            "name",
            "user",
            "sector",
            "broken",
            "message_converter",
            "prefetch",
            "memory_limit",
            "concurrency",
            "receive_timeout",
            "client_id",
            "queue",
            "topic",
            "persistent",
        ] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn a_url_is_shown_without_its_passwords() {
        for (url, shown) in [
            ("vm://local", "vm://local"),
            ("vm://local?jms.clientID=a", "vm://local?jms.clientID=a"),
            ("tcp://h:1?jms.userName=u&jms.password=p?&x=1", "tcp://h:1?jms.userName=u&jms.password=***&x=1"),
            ("smtp://u:p@h:25/x", "smtp://u:***@h:25/x"),
            ("smtp://u:p@q@h?a=1", "smtp://u:***@h?a=1"),
            ("smtp://u@h", "smtp://u@h"),
            ("mailto:u:p@h", "mailto:u:***@h"),
            ("no url", "no url"),
            ("ä://ö:ü@ß", "ä://ö:***@ß"),
        ] {
            assert_eq!(without_passwords(url), shown, "{url}");
        }
    }
}

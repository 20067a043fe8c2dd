//! The options of a URL, `name=value` behind its `?`: of connection factories, and of the addresses that brokers listen on.

use std::borrow::Cow;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use thiserror::Error;

use crate::nearest::nearest;

/// An option that may stand in a URL, and what it sets in a `T`.
#[derive(Debug)]
pub struct UrlOption<T> {
    /// Its name.
    pub name: &'static str,
    /// Sets it to a value; an error says what was expected.
    pub set: fn(&mut T, &str) -> Result<(), &'static str>,
}

/// What is wrong with an option of a URL. No URL is shown with its options.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlOptionError {
    /// An option that does not exist.
    #[error("`{url}` has the unknown option `{option}`{}", suggestion(.nearest.as_ref()))]
    Unknown {
        /// The URL, without its options.
        url: String,
        /// The option.
        option: String,
        /// The known option that is nearest to it.
        nearest: Option<&'static str>,
    },
    /// An option that is given twice.
    #[error("`{url}` has the option `{option}` twice; expected it once")]
    Twice {
        /// The URL, without its options.
        url: String,
        /// The option.
        option: &'static str,
    },
    /// An option whose value cannot be read, or is not offered.
    #[error("`{url}`: option `{option}` is `{value}`; expected {expected}")]
    Value {
        /// The URL, without its options.
        url: String,
        /// The option.
        option: &'static str,
        /// The value; `***` for a secret.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
}

fn suggestion(nearest: Option<&&'static str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"))
}

/// Reads the options behind the `?` of `url`, which stands for the URL in errors, into `target`. Values may have percent
/// escapes. No value of an option whose name is among `secrets` is shown.
///
/// # Errors
/// See [`UrlOptionError`]; what was read before it is set.
pub fn read_options<T>(
    url: &str,
    query: &str,
    known: &[UrlOption<T>],
    secrets: &[&str],
    target: &mut T,
) -> Result<(), UrlOptionError> {
    let mut given = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let Some(option) = known.iter().find(|option| option.name == name) else {
            let (url, option) = (url.to_owned(), name.to_owned());
            let nearest = nearest(name, known.iter().map(|option| option.name));
            return Err(UrlOptionError::Unknown { url, option, nearest });
        };
        let refuse = |value: &str, expected| UrlOptionError::Value {
            url: url.to_owned(),
            option: option.name,
            value: if secrets.contains(&option.name) { "***".to_owned() } else { value.to_owned() },
            expected,
        };
        let decoded = decode(value)
            .ok_or_else(|| refuse(value, "UTF-8 text, with `%` written as `%25` where it is meant"))?;
        (option.set)(target, &decoded).map_err(|expected| refuse(&decoded, expected))?;
        if given.contains(&option.name) {
            return Err(UrlOptionError::Twice { url: url.to_owned(), option: option.name });
        }
        given.push(option.name);
    }
    Ok(())
}

/// A value in milliseconds.
///
/// # Errors
/// What was expected.
pub fn milliseconds(value: &str) -> Result<Duration, &'static str> {
    value.parse().map(Duration::from_millis).map_err(|_| "a number of milliseconds")
}

/// A value that is true or false.
///
/// # Errors
/// What was expected.
pub fn flag(value: &str) -> Result<bool, &'static str> {
    value.parse().map_err(|_| "`true` or `false`")
}

/// The text behind percent escapes. An escape that is none would make another value of it, another password say.
fn decode(value: &str) -> Option<Cow<'_, str>> {
    let is_escape = |rest: &str| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    value.split('%').skip(1).all(is_escape).then(|| percent_decode_str(value).decode_utf8().ok())?
}

//! What the value of a key can be.

use super::KeySchema;

/// What the value of a key can be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A text; what of, to follow "expected".
    Text(&'static str),
    Boolean,
    /// A whole number within bounds.
    Number {
        least: i64,
        most: i64,
    },
    /// A number from 1 up.
    Factor,
    /// A text such as `"20s"`.
    Duration {
        may_be_zero: bool,
    },
    /// A duration, or milliseconds from `least` up.
    DurationOrMilliseconds {
        least: i64,
    },
    /// A text such as `"64MiB"`, or bytes.
    Size {
        least: u64,
        most: Option<u64>,
    },
    /// One of some words.
    Words(&'static [&'static str]),
    /// A range of workers.
    Concurrency,
    /// The name of something, said with its article.
    Name(&'static str),
    /// A list of texts, and what of; in the environment written as in the file, or with commas only.
    List(&'static str),
    /// Tables of further keys, each under a name that the user chose.
    Tables(&'static [KeySchema]),
    /// A table of further keys.
    Table(&'static [KeySchema]),
    /// Of another broker, and with no meaning in this one; says why. Any value will do.
    WithoutEffect(&'static str),
}

impl Kind {
    /// What the value should be, to follow "expected".
    pub(super) fn expects(self) -> String {
        match self {
            Self::Text(what) => what.to_owned(),
            Self::Boolean => "true or false".to_owned(),
            Self::Number { least, most } => format!("a whole number from {least} to {most}"),
            Self::Factor => "a factor from 1 up, such as 2.0".to_owned(),
            Self::Duration { may_be_zero: true } => {
                "a duration such as \"20s\", \"500ms\", \"2m\" or \"1h30m\"".to_owned()
            }
            Self::Duration { may_be_zero: false } => {
                "a duration above 0 such as \"20s\", \"500ms\", \"2m\" or \"1h30m\"".to_owned()
            }
            Self::DurationOrMilliseconds { .. } => {
                "a duration above 0 such as \"30s\", or a number of milliseconds".to_owned()
            }
            Self::Size { least, most: Some(most) } => {
                format!("a size from \"{}\" to \"{}\"", size(least), size(most))
            }
            Self::Size { .. } => "a size above 0 such as \"64MiB\", or a number of bytes".to_owned(),
            Self::Words(words) => {
                let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
                match words.split_last() {
                    Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
                    _ => words.concat(),
                }
            }
            Self::Concurrency => {
                "a range of workers such as \"2-8\", or a single upper bound such as \"8\", from 1 up"
                    .to_owned()
            }
            Self::Name(what) => format!("the name of {what}"),
            Self::List(what) => format!("a list of {what}"),
            Self::Tables(_) => "a table of tables, each under a name of its own".to_owned(),
            Self::Table(_) => "a table".to_owned(),
            Self::WithoutEffect(_) => "anything".to_owned(),
        }
    }
}

/// Bytes in the largest unit that they are whole in.
pub(super) fn size(bytes: u64) -> String {
    [(30, "GiB"), (20, "MiB"), (10, "KiB")]
        .into_iter()
        .find(|(bits, _)| bytes >= 1 << bits && bytes.trailing_zeros() >= *bits)
        .map_or_else(|| bytes.to_string(), |(bits, unit)| format!("{}{unit}", bytes >> bits))
}

//! Tables that have either `queue` or `topic`.

use super::super::error::ConfigError;
use super::super::reading::{Setting, TableReader};
use super::super::value;

/// Which of the two a table has, with what that says.
#[derive(Debug)]
pub(super) enum QueueOrTopic {
    Queue(Setting<String>),
    Topic(Setting<String>),
}

/// What is said of a table that has both, or none, of the two.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) both: &'static str,
    pub(super) none: &'static str,
    /// Instead of none.
    pub(super) expected: &'static str,
}

impl QueueOrTopic {
    /// Reads the one that there is.
    pub(super) fn read(table: &TableReader<'_>, wrong: &Wrong) -> Option<Self> {
        let queue = table.setting("queue", value::text);
        let topic = table.setting("topic", value::text);
        let (found, expected) = match (queue, topic) {
            (Some(queue), None) => return Some(Self::Queue(queue)),
            (None, Some(topic)) => return Some(Self::Topic(topic)),
            (Some(_), Some(_)) => (wrong.both, "one of them"),
            // What is wrong with the one that is there is said already.
            (None, None) if ["queue", "topic"].iter().any(|key| table.values().contains_key(*key)) => {
                return None;
            }
            (None, None) => (wrong.none, wrong.expected),
        };
        table.problem(ConfigError::Value {
            place: table.own_place(),
            found: found.to_owned(),
            expected: expected.to_owned(),
        });
        None
    }
}

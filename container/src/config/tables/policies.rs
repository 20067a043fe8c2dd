//! `[broker.policies.NAME]`.

use corriere_core::{DestinationPattern, PatternError, RedeliveryOverrides};

use super::super::error::ConfigError;
use super::super::reading::{Setting, TableReader};
use super::super::schema::{KeySchema, Kind};
use super::super::value;
use super::broker::{self, DeadLetterKind};
use super::queue_or_topic::{QueueOrTopic, Wrong};
use super::redelivery;

pub(super) const KEYS: &[KeySchema] = &[
    KeySchema::new(
        "queue",
        Kind::Text("the name of a queue, with `*` or `>` between dots"),
        "The queues that it is for: `*` is one element between dots, `>` at the end all further ones, also none.",
    )
    .answers("`queue` of a `policyEntry`"),
    KeySchema::new(
        "topic",
        Kind::Text("the name of a topic, with `*` or `>` between dots"),
        "The topics that it is for. One of the two is given.",
    )
    .answers("`topic` of a `policyEntry`"),
    KeySchema::new(
        "prefetch",
        Kind::Number { least: 1, most: u16::MAX as i64 / 2 },
        "How many messages are sent ahead to a consumer to whose prefetch neither it nor its connection factory says anything.",
    )
    .answers("`queuePrefetch`, `topicPrefetch` of a `policyEntry`"),
    broker::DEAD_LETTERS,
    broker::DEAD_LETTER_NON_PERSISTENT,
    KeySchema::new(
        "redelivery",
        Kind::Table(redelivery::OVERRIDES),
        "When a message whose handling failed comes again: the keys of `[broker.redelivery]`, which holds for those that are absent.",
    )
    .answers("`redeliveryPolicyMap`"),
];

/// `[broker.policies.NAME]`: what holds for some destinations, where it is not as the broker has it for all.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PolicyTable {
    /// For which destinations.
    pub pattern: DestinationPattern,
    /// How many messages are sent ahead to consumers that do not say so themselves.
    pub prefetch: Option<u32>,
    /// Where messages go that cannot be delivered.
    pub dead_letters: Option<DeadLetterKind>,
    /// Whether non-persistent messages are kept as dead letters too.
    pub dead_letter_non_persistent: Option<bool>,
    /// `redelivery` in it.
    pub redelivery: RedeliveryOverrides,
}

/// The policies of `[broker]`, in the order of their names.
pub(super) fn read(broker: &TableReader<'_>) -> Vec<PolicyTable> {
    let mut policies: Vec<(&str, PolicyTable)> = Vec::new();
    let mut tables = broker.tables("policies");
    tables.sort_unstable_by_key(|(name, _)| *name);
    for (name, table) in tables {
        // Whatever its pattern is, all that is wrong with the rest is said.
        let rest = (
            table.value("prefetch", |value| {
                value::count(value).filter(|prefetch| (1..=32_767).contains(prefetch))
            }),
            broker::dead_letters(&table),
            table.value("dead_letter_non_persistent", value::boolean),
            redelivery::read(&table),
        );
        let Some(Setting { value: pattern, place }) = pattern(&table) else { continue };
        if let Some((other, _)) = policies.iter().find(|(_, policy)| policy.pattern == pattern) {
            let reason = format!(
                "`{pattern}` has the policy `broker.policies.{other}` already; expected one for each pattern"
            );
            table.problem(ConfigError::Pattern { place, reason });
            continue;
        }
        let (prefetch, dead_letters, dead_letter_non_persistent, redelivery) = rest;
        let policy = PolicyTable { pattern, prefetch, dead_letters, dead_letter_non_persistent, redelivery };
        policies.push((name, policy));
    }
    policies.into_iter().map(|(_, policy)| policy).collect()
}

fn pattern(table: &TableReader<'_>) -> Option<Setting<DestinationPattern>> {
    let wrong = Wrong {
        both: "for a queue and a topic at once",
        none: "for no destination",
        expected: "queue = \"…\" or topic = \"…\" in it, such as \"orders.>\"",
    };
    let (made, place): (Result<_, PatternError>, _) = match QueueOrTopic::read(table, &wrong)? {
        QueueOrTopic::Queue(queue) => (DestinationPattern::queue(&queue.value), queue.place),
        QueueOrTopic::Topic(topic) => (DestinationPattern::topic(&topic.value), topic.place),
    };
    match made {
        Ok(value) => Some(Setting { value, place }),
        Err(error) => {
            let expected = || "the name of a queue or a topic, with `*` or `>` between dots".to_owned();
            table.problem(
                place.error(expected, |place| ConfigError::Pattern { place, reason: error.to_string() }),
            );
            None
        }
    }
}

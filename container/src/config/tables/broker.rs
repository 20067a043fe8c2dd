//! `[broker]`.

use std::time::Duration;

use corriere_core::RedeliveryPolicy;
use linkme::distributed_slice;

use super::super::reading::{Reading, Setting, TableReader};
use super::super::schema::{KeySchema, Kind, Shape, TABLES, TableSchema};
use super::super::value;
use super::policies::{self, PolicyTable};
use super::preset::{self, Preset};
use super::redelivery;
use super::store::{self, StoreTable};

#[expect(unsafe_code, reason = "linkme names a link section")]
#[distributed_slice(TABLES)]
static SCHEMA: TableSchema = TableSchema {
    name: "broker",
    shape: Shape::Single,
    meaning: "The embedded broker; without this table none is started.",
    keys: &[
        KeySchema::new(
            "name",
            Kind::Text("a name of letters, digits, `.`, `_` and `-`, not of dots alone"),
            "Its name in `vm://NAME`, and that of its directory.",
        )
        .default("\"local\"")
        .answers("`brokerName`"),
        KeySchema::new(
            "listen",
            Kind::List("addresses such as [\"tcp://127.0.0.1:61616\"]"),
            "Where clients of other processes connect, over OpenWire, as ActiveMQ's clients do.",
        )
        .default("[]")
        .answers("`transportConnector`"),
        KeySchema::new("preset", Kind::Words(&["activemq"]), "The defaults of another broker instead of ours.")
            .expecting("the name of a preset, \"activemq\""),
        KeySchema::new(
            "memory_limit",
            Kind::Size { least: 1, most: None },
            "Bytes of messages in memory; at the limit a send waits. With a `data_directory`, bodies that wait leave it when \
             more than half is used.",
        )
        .default("\"64MiB\"")
        .activemq("\"1GiB\"")
        .answers("`memoryUsage`"),
        KeySchema::new(
            "send_deadline",
            Kind::Duration { may_be_zero: true },
            "How long a send waits for memory, or for room on the disk, before it fails.",
        )
        .default("\"30s\"")
        .answers("`sendFailIfNoSpaceAfterTimeout`"),
        KeySchema::new(
            "priorities",
            Kind::Boolean,
            "Whether a queue delivers its more urgent messages first; `false`: all in the order of their arrival.",
        )
        .default("true")
        .activemq("false")
        .answers("`prioritizedMessages` of a `policyEntry`"),
        DEAD_LETTERS.default("\"individual\"").activemq("\"shared\""),
        DEAD_LETTER_NON_PERSISTENT.default("false"),
        KeySchema::new(
            "redelivery",
            Kind::Table(redelivery::KEYS),
            "When a message whose handling failed comes again. The options of a connection factory's URL win.",
        )
        .answers("`redeliveryPolicy`"),
        KeySchema::new(
            "policies",
            Kind::Tables(policies::KEYS),
            "What holds otherwise for some queues or topics, each under a name of its own. The most specific one alone holds.",
        )
        .answers("`destinationPolicy`, `policyEntry`"),
        KeySchema::new(
            "data_directory",
            store::DIRECTORY,
            "Where persistent messages are kept, in a directory named like the broker; a relative path starts at the current \
             directory. Without it they are in memory.",
        )
        .answers("`dataDirectory`, `persistent`"),
        store::SYNC_ON_WRITE
            .default("true")
            .answers("`enableJournalDiskSyncs`"),
        KeySchema::new("store", Kind::Table(store::KEYS), "How messages are kept; without effect when there is no `data_directory`.")
            .answers("`persistenceAdapter`"),
    ],
};

pub(super) const DEAD_LETTERS: KeySchema = KeySchema::new(
    "dead_letters",
    Kind::Words(&["individual", "shared", "discard"]),
    "Where messages go that cannot be delivered. `\"individual\"`: to `DLQ.<queue>` and `DLQ.topic.<topic>`; \
             `\"shared\"`: to `ActiveMQ.DLQ`; `\"discard\"`: nowhere.",
)
.answers("`deadLetterStrategy`");

pub(super) const DEAD_LETTER_NON_PERSISTENT: KeySchema = KeySchema::new(
    "dead_letter_non_persistent",
    Kind::Boolean,
    "Whether non-persistent messages become dead letters too, instead of being dropped and counted.",
)
.answers("`processNonPersistent`");

/// `[broker]`: the embedded broker.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BrokerTable {
    /// The name under which `vm:` finds it.
    pub name: String,
    /// Where it listens for clients of other processes.
    pub listen: Option<Setting<Vec<String>>>,
    /// Whose defaults hold where the table says nothing.
    pub preset: Option<Preset>,
    /// Bytes of messages that memory may hold.
    pub memory_limit: Option<u64>,
    /// How long a send may wait for memory.
    pub send_deadline: Option<Duration>,
    /// Whether a queue delivers its more urgent messages first.
    pub priorities: Option<bool>,
    /// Where messages go that cannot be delivered.
    pub dead_letters: Option<DeadLetterKind>,
    /// Whether non-persistent messages are kept as dead letters too.
    pub dead_letter_non_persistent: Option<bool>,
    /// `[broker.redelivery]`.
    pub redelivery: RedeliveryPolicy,
    /// `[broker.policies.NAME]`.
    pub policies: Vec<PolicyTable>,
    /// Where and how messages are kept.
    pub store: StoreTable,
}

/// Where messages go that cannot be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeadLetterKind {
    /// To a queue for each source.
    Individual,
    /// All to one queue.
    Shared,
    /// Nowhere.
    Discard,
}

impl Default for BrokerTable {
    fn default() -> Self {
        Self {
            name: Self::DEFAULT_NAME.to_owned(),
            listen: None,
            preset: None,
            memory_limit: None,
            send_deadline: None,
            priorities: None,
            dead_letters: None,
            dead_letter_non_persistent: None,
            redelivery: RedeliveryPolicy::default(),
            policies: Vec::new(),
            store: StoreTable::default(),
        }
    }
}

impl BrokerTable {
    /// The name of a broker to which the configuration gives none.
    pub const DEFAULT_NAME: &str = "local";

    pub(super) fn read(reading: &Reading<'_>) -> Option<Self> {
        let table = reading.table("broker")?;
        Some(Self {
            name: table
                .value("name", |value| value::text(value).filter(|name| is_name(name)))
                .unwrap_or_else(|| Self::DEFAULT_NAME.to_owned()),
            listen: table.setting("listen", value::texts),
            preset: preset::read(&table),
            memory_limit: table.value("memory_limit", |value| value::size(value).filter(|size| *size > 0)),
            send_deadline: table.value("send_deadline", value::duration),
            priorities: table.value("priorities", value::boolean),
            dead_letters: dead_letters(&table),
            dead_letter_non_persistent: table.value("dead_letter_non_persistent", value::boolean),
            redelivery: redelivery::read(&table).over(&RedeliveryPolicy::default()),
            policies: policies::read(&table),
            store: StoreTable::read(&table),
        })
    }
}

/// Whether `vm://NAME` can name it, and a directory in the data directory, which one of dots only would lead out of.
fn is_name(name: &str) -> bool {
    let fits = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    name.chars().all(fits) && name.chars().any(|character| character != '.')
}

/// Where a table says that messages go that cannot be delivered.
pub(super) fn dead_letters(table: &TableReader<'_>) -> Option<DeadLetterKind> {
    table.value("dead_letters", |value| match value::text(value)?.as_str() {
        "individual" => Some(DeadLetterKind::Individual),
        "shared" => Some(DeadLetterKind::Shared),
        "discard" => Some(DeadLetterKind::Discard),
        _ => None,
    })
}

//! `[broker]`.

use std::time::Duration;

use corriere_core::RedeliveryPolicy;
use linkme::distributed_slice;

use super::super::reading::{Reading, Setting, TableReader};
use super::super::schema::{BOOLEAN, DURATION, KeySchema, Shape, TABLES, TableSchema};
use super::super::value;
use super::preset::{self, Preset};
use super::store::{self, StoreTable};

#[expect(unsafe_code, reason = "linkme names a link section")]
#[distributed_slice(TABLES)]
static SCHEMA: TableSchema = TableSchema {
    name: "broker",
    shape: Shape::Single,
    keys: &[
        KeySchema::value("name", "a name of letters, digits, `.`, `_` and `-`, not of dots alone"),
        KeySchema::list("listen", "a list of addresses such as [\"tcp://127.0.0.1:61616\"]"),
        KeySchema::value("preset", preset::NAME),
        KeySchema::value("memory_limit", "a size above 0 such as \"64MiB\", or a number of bytes"),
        KeySchema::value("send_deadline", DURATION),
        KeySchema::value("dead_letters", "\"individual\", \"shared\" or \"discard\""),
        KeySchema::value("dead_letter_non_persistent", BOOLEAN),
        KeySchema::table(
            "redelivery",
            &[
                KeySchema::value("maximum_redeliveries", "a whole number, or -1 for no limit"),
                KeySchema::value("initial_delay", DURATION),
                KeySchema::value("delay", DURATION),
                KeySchema::value("back_off", "a factor from 1 up, such as 2.0"),
                KeySchema::value("maximum_delay", DURATION),
                KeySchema::value("non_blocking", BOOLEAN),
            ],
        ),
        KeySchema::value("data_directory", store::DIRECTORY),
        KeySchema::value("sync_on_write", BOOLEAN),
        KeySchema::table("store", store::KEYS),
    ],
};

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
    /// Where messages go that cannot be delivered.
    pub dead_letters: Option<DeadLetterKind>,
    /// Whether non-persistent messages are kept as dead letters too.
    pub dead_letter_non_persistent: Option<bool>,
    /// `[broker.redelivery]`.
    pub redelivery: RedeliveryPolicy,
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
            dead_letters: None,
            dead_letter_non_persistent: None,
            redelivery: RedeliveryPolicy::default(),
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
            dead_letters: table.value("dead_letters", |value| match value::text(value)?.as_str() {
                "individual" => Some(DeadLetterKind::Individual),
                "shared" => Some(DeadLetterKind::Shared),
                "discard" => Some(DeadLetterKind::Discard),
                _ => None,
            }),
            dead_letter_non_persistent: table.value("dead_letter_non_persistent", value::boolean),
            redelivery: table.table("redelivery").map(|table| redelivery(&table)).unwrap_or_default(),
            store: StoreTable::read(&table),
        })
    }
}

/// Whether `vm://NAME` can name it, and a directory in the data directory, which one of dots only would lead out of.
fn is_name(name: &str) -> bool {
    let fits = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    name.chars().all(fits) && name.chars().any(|character| character != '.')
}

fn redelivery(table: &TableReader<'_>) -> RedeliveryPolicy {
    let default = RedeliveryPolicy::default();
    let maximum = table.value("maximum_redeliveries", |value| match value::integer(value)? {
        -1 => Some(None),
        number => u32::try_from(number).ok().map(Some),
    });
    RedeliveryPolicy {
        maximum_redeliveries: maximum.unwrap_or(default.maximum_redeliveries),
        initial_delay: table.value("initial_delay", value::duration).unwrap_or(default.initial_delay),
        delay: table.value("delay", value::duration).unwrap_or(default.delay),
        back_off: table
            .value("back_off", |value| {
                value::number(value).filter(|factor| factor.is_finite() && *factor >= 1.0)
            })
            .or(default.back_off),
        maximum_delay: table.value("maximum_delay", value::duration).or(default.maximum_delay),
        non_blocking: table.value("non_blocking", value::boolean).unwrap_or(default.non_blocking),
    }
}

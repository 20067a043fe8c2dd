//! `[broker.store]`: how messages are kept on the disk.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use config::Value;

use super::super::error::ConfigError;
use super::super::reading::{Setting, TableReader};
use super::super::schema::{KeySchema, Kind};
use super::super::value;

const FILE_LENGTHS: std::ops::RangeInclusive<u64> = 16 << 10..=1 << 30;
const DEFAULT_FILE_LENGTH: u64 = 32 << 20;
/// What the store has under its directory besides the archive.
const OWN: [&str; 5] = ["lock", "attempts", "journal", "kr-store", "tmp-storage"];

pub(super) const DIRECTORY: Kind = Kind::Text("the path of a directory");
pub(super) const SYNC_ON_WRITE: KeySchema = KeySchema::new(
    "sync_on_write",
    Kind::Boolean,
    "A persistent send, a commit and a prepare are confirmed when they are on the disk; `false`: when they are written, so \
     that a power cut may take the last 100 ms of what was confirmed.",
);
const NO_INDEX_FILE: &str =
    "the index is in memory, and a checkpoint of it in one file with pages of its own";

/// The names of ActiveMQ's first journal, and ours.
pub(super) const KEYS: &[KeySchema] = &[
    KeySchema::new("directory", DIRECTORY, "Another name for `broker.data_directory`.").answers("`directory`"),
    KeySchema::new("sync_on_write", Kind::Boolean, "Another name for `broker.sync_on_write`.")
        .answers("`syncOnWrite`"),
    KeySchema::new(
        "max_file_length",
        Kind::Size { least: *FILE_LENGTHS.start(), most: Some(*FILE_LENGTHS.end()) },
        "Length of a file of the journal, cut to whole 4 KiB.",
    )
    .default("\"32MiB\"")
    .answers("`maxFileLength`, `journalMaxFileLength`"),
    KeySchema::new(
        "store_limit",
        Kind::Size { least: 2 * *FILE_LENGTHS.start(), most: None },
        "Bytes that the journal may have on the disk, at least two files of it; at the limit a send waits up to \
         `send_deadline`, then fails; what takes messages away goes on.",
    )
    .expecting("a size such as \"10GiB\", of at least two files of the journal (`max_file_length`)")
    .answers("`storeUsage`"),
    KeySchema::new(
        "ack_sync",
        Kind::Boolean,
        "Whether an acknowledgement returns only when it is on the disk; without it, when it is written: a power cut may take \
         the last 100 ms of them, and their messages come again.",
    )
    .default("false"),
    KeySchema::new(
        "checkpoint_after",
        Kind::Size { least: 1, most: None },
        "So much new journal, and the index is written; a start reads the journal from there.",
    )
    .expecting("a size above 0 such as \"256MiB\"")
    .default("\"256MiB\""),
    KeySchema::new(
        "cleanup_interval",
        Kind::DurationOrMilliseconds { least: 1 },
        "How often the index is written at least, and files are used again or archived that nobody needs.",
    )
    .default("\"30s\"")
    .answers("`cleanupInterval`, `checkpointInterval`"),
    KeySchema::new(
        "archive_data_logs",
        Kind::Boolean,
        "Whether such files are moved to the archive instead, where nobody removes them.",
    )
    .default("false")
    .answers("`archiveDataLogs`"),
    KeySchema::new(
        "directory_archive",
        Kind::Text("the path of a directory that is none of the store's own"),
        "The archive; a relative path starts at the broker's directory. Files are copied there where it is on another file \
         system; while it cannot be written to, they stay in the journal and count for `store_limit`.",
    )
    .default("\"archive\"")
    .answers("`directoryArchive`"),
    KeySchema::without_effect("use_nio", "every read and write says where in the file it is, always")
        .answers("`useNIO`"),
    KeySchema::without_effect("persistent_index", "the index is always written at checkpoints")
        .answers("`persistentIndex`"),
    KeySchema::without_effect(
        "max_checkpoint_message_add_size",
        "a transaction is written as it comes, however long it is",
    )
    .answers("`maxCheckpointMessageAddSize`"),
    KeySchema::without_effect("index_bin_size", NO_INDEX_FILE).answers("`indexBinSize`"),
    KeySchema::without_effect("index_key_size", NO_INDEX_FILE).answers("`indexKeySize`"),
    KeySchema::without_effect("index_page_size", NO_INDEX_FILE).answers("`indexPageSize`"),
];

/// `[broker.store]`, and of `[broker]` what is about the store.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StoreTable {
    /// Where messages are kept, each broker in a directory of its name; without it they are in memory.
    pub data_directory: Option<Setting<PathBuf>>,
    /// Whether a confirmed persistent message is on the disk.
    pub sync_on_write: Option<bool>,
    /// Bytes of a file of the journal.
    pub max_file_length: Option<u64>,
    /// Bytes that the journal may have on the disk.
    pub store_limit: Option<u64>,
    /// Whether an acknowledgement returns only when it is on the disk.
    pub ack_sync: Option<bool>,
    /// Bytes of journal after which there is a checkpoint.
    pub checkpoint_after: Option<u64>,
    /// How often there is a checkpoint at least, with files reclaimed that nobody needs.
    pub cleanup_interval: Option<Duration>,
    /// Whether such files are moved to the archive instead of being used again.
    pub archive_data_logs: Option<bool>,
    /// Where the archive is; a relative path starts at the broker's directory.
    pub directory_archive: Option<PathBuf>,
    /// Whether there is a table `[broker.store]`.
    pub is_there: bool,
}

impl StoreTable {
    pub(super) fn read(broker: &TableReader<'_>) -> Self {
        let mut read = Self {
            data_directory: broker.setting("data_directory", directory),
            sync_on_write: broker.value("sync_on_write", value::boolean),
            ..Self::default()
        };
        let Some(store) = broker.table("store") else { return read };
        read.is_there = true;
        for (name, same) in [("directory", "data_directory"), ("sync_on_write", "sync_on_write")] {
            if store.values().contains_key(name) && broker.values().contains_key(same) {
                store.problem(ConfigError::Value {
                    place: store.place(name),
                    found: format!("a second value for `broker.{same}`"),
                    expected: "one of the two".to_owned(),
                });
            }
        }
        read.data_directory = read.data_directory.or_else(|| store.setting("directory", directory));
        read.sync_on_write = read.sync_on_write.or_else(|| store.value("sync_on_write", value::boolean));
        read.max_file_length = store.value("max_file_length", |value| {
            value::size(value).filter(|length| FILE_LENGTHS.contains(length))
        });
        let least = 2 * read.max_file_length.unwrap_or(DEFAULT_FILE_LENGTH);
        read.store_limit =
            store.value("store_limit", |value| value::size(value).filter(|limit| *limit >= least));
        read.ack_sync = store.value("ack_sync", value::boolean);
        read.checkpoint_after =
            store.value("checkpoint_after", |value| value::size(value).filter(|size| *size > 0));
        read.cleanup_interval = store.value("cleanup_interval", |value| {
            let milliseconds = value::integer(value).and_then(|number| u64::try_from(number).ok());
            let interval = milliseconds.map(Duration::from_millis).or_else(|| value::duration(value));
            interval.filter(|interval| !interval.is_zero())
        });
        read.archive_data_logs = store.value("archive_data_logs", value::boolean);
        read.directory_archive = store.value("directory_archive", |value| {
            directory(value).filter(|archive| may_be_the_archive(archive))
        });
        read
    }
}

fn directory(value: &Value) -> Option<PathBuf> {
    value::text(value).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// A relative one starts among the store's own files, of which it must be none.
fn may_be_the_archive(archive: &Path) -> bool {
    let mut components = archive.components().filter(|component| *component != Component::CurDir);
    match components.next() {
        None => false,
        Some(Component::Normal(first)) => OWN.iter().all(|own| first != *own),
        Some(_) => true,
    }
}

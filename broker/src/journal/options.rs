//! How a journal is kept.

use std::path::PathBuf;
use std::time::Duration;

/// How a journal is kept. [`JournalOptions::new`] has the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalOptions {
    /// Where everything is: `<data_directory>/<broker name>`.
    pub directory: PathBuf,
    /// Bytes of a segment, from 4 KiB to 1 GiB; 32 MiB. A message that takes more than a quarter of it has a file of its own.
    pub max_file_length: u64,
    /// Whether what is confirmed survives a power cut; otherwise it survives the end of the process, and a power cut
    /// from 100 ms later on. True.
    pub sync_on_write: bool,
    /// Whether acknowledgements are as safe as sends; otherwise they survive the end of the process at once, and a
    /// power cut from 100 ms later on. Without effect where `sync_on_write` is false. False.
    pub ack_sync: bool,
    /// How long it is between two checkpoints at most; 30 s.
    pub cleanup_interval: Duration,
    /// Bytes of journal after which there is a checkpoint, however short it is since the last one; 256 MiB.
    pub checkpoint_after: u64,
    /// Bytes that segments with records and files of large messages may have before nothing is sent any more; spares
    /// are not counted. It is at least that of two segments. None.
    pub store_limit: Option<u64>,
    /// Where segments go that are needed no more; without it they are used again.
    pub archive: Option<PathBuf>,
}

impl JournalOptions {
    /// A journal in this directory, with the defaults.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            max_file_length: 32 << 20,
            sync_on_write: true,
            ack_sync: false,
            cleanup_interval: Duration::from_secs(30),
            checkpoint_after: 256 << 20,
            store_limit: None,
            archive: None,
        }
    }
}

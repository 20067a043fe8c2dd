//! The journal: a [`MessageStore`](crate::store::MessageStore) on disk. `docs/journal-format.md` has its bytes.

mod archive;
mod attempts;
mod batch;
pub(crate) mod change;
mod checkpoint;
mod committer;
mod completer;
mod directory;
pub(crate) mod encoded;
mod error;
mod fields;
mod hold;
mod index;
pub mod inspect;
mod keeper;
mod ledger;
pub(crate) mod lsn;
mod message;
mod options;
mod pending;
pub(crate) mod reader;
mod record;
mod recovery;
mod room;
pub(crate) mod scan;
pub(crate) mod segments;
mod status;
mod store;
#[cfg(test)]
mod tests;
mod threads;
mod window;
pub(crate) mod writer;

pub use error::OpenError;
pub use options::JournalOptions;
pub use store::JournalStore;

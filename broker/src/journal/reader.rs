//! Reads one message back.

use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use corriere_core::Message;

use super::change::Appended;
use super::error::advice;
use super::fields::Fault;
use super::index::Reference;
use super::record::{StoredMessage, record_at};
use super::segments::Segments;
use crate::files::is_out_of_handles;
use crate::store::{StoreError, StoredId};

/// Reads the message `stored` back, which is where this reference says.
///
/// # Errors
/// What was read is not that record ([`StoreError::Damaged`]), or it could not be read; [`StoreError::Full`] when too many
/// files are open for that now.
pub(crate) fn read_message(
    segments: &Segments,
    stored: StoredId,
    reference: &Reference,
) -> Result<Arc<Message>, StoreError> {
    read_appended(segments, stored, reference).map(|(_, message)| message)
}

/// The same with what else the record says of it.
///
/// # Errors
/// As [`read_message`].
pub(crate) fn read_appended(
    segments: &Segments,
    stored: StoredId,
    &Reference { lsn, length, large, .. }: &Reference,
) -> Result<(Appended, Arc<Message>), StoreError> {
    let segment = segments.locate(lsn).map_err(|missing| StoreError::Damaged {
        place: missing.display().to_string(),
        reason: format!("it is missing, and has message {} at {lsn}", stored.0),
    })?;
    let offset = lsn.0 - segment.base.0;
    let unreadable = |error: Unreadable| error.at(&segment.path, offset);
    if segment.length < offset.saturating_add(length.into()) {
        return Err(unreadable("the file ends before the end of the record".into()));
    }
    let file = segments.file(segment.base).map_err(|error| unreadable(error.into()))?;
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, offset).map_err(|error| unreadable(error.into()))?;
    let record = record_at(&bytes, lsn).map_err(|fault| unreadable(fault.into()))?.len();
    let mut bytes = Bytes::from(bytes);
    bytes.truncate(record);
    let message = StoredMessage::read(&bytes).map_err(|fault| unreadable(fault.into()))?;
    if !message.appended.is_named(stored) || message.appended.large != large {
        return Err(unreadable("the record is that of another message".into()));
    }
    let appended = message.appended.clone();
    let message = message.message(|length| read_large(segments, appended.stored, length));
    let (path, offset) = match large {
        Some(large) => (segments.large_path(large.name), 0),
        None => (segment.path.clone(), offset),
    };
    let message = message.map_err(|error| error.at(&path, offset))?;
    Ok((appended, Arc::new(message)))
}

/// Reads the file of a large message, which is to have so many bytes.
pub(super) fn read_large(segments: &Segments, stored: StoredId, length: u64) -> Result<Vec<u8>, Unreadable> {
    let file = segments.large_file(stored)?;
    if file.len()? != length {
        return Err("the file of its own has another length".into());
    }
    let mut bytes = vec![0; usize::try_from(length).map_err(|_| "it is too long for this machine")?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Why something was not read.
#[derive(Debug)]
pub(super) enum Unreadable {
    Fault(Fault),
    Io(io::Error),
}

impl Unreadable {
    fn at(self, path: &Path, offset: u64) -> StoreError {
        let place = format!("{}, offset {offset}", path.display());
        match self {
            Self::Fault(fault) => StoreError::Damaged { place, reason: fault.to_owned() },
            Self::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                StoreError::Damaged { place, reason: "the file is missing".to_owned() }
            }
            // It can be tried again.
            Self::Io(error) if is_out_of_handles(&error) => {
                StoreError::Full { reason: format!("{place}: {error}{}", advice(&error)).into() }
            }
            Self::Io(error) => StoreError::Io(format!("{place}: {error}")),
        }
    }
}

impl From<Fault> for Unreadable {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

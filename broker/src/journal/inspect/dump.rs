//! Which messages are there?

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::look::Looked;
use super::{InspectError, describe};
use crate::files::FileSystem;
use crate::journal::index::{Holder, Operation, Reference};
use crate::journal::reader::read_message;
use crate::store::StoredId;

/// What was written out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dumped {
    /// How many messages.
    pub messages: u64,
    /// How many of them could not be read: their lines have an `error` in the place of headers and body.
    pub unreadable: u64,
}

/// Writes the live messages as JSON, one a line: queue by queue and then subscription by subscription, each in its order, then
/// those of prepared transactions.
///
/// # Errors
/// It could not be looked at, a broker would refuse to start on it, or `out` failed.
pub fn dump(
    files: &Arc<dyn FileSystem>,
    directory: &Path,
    out: &mut dyn Write,
) -> Result<Dumped, InspectError> {
    let looked = Looked::at(files, directory)?;
    let (mut saved, ..) = looked.state()?;
    let mut dumped = Dumped::default();
    let mut write =
        |stored: StoredId, reference: &Reference, holder: Option<&Holder>, transaction: Option<&str>| {
            let mut line = describe::of_reference(stored, holder, reference);
            transaction.map(|transaction| line.insert("transaction".to_owned(), json!(transaction)));
            match read_message(&looked.segments, stored, reference) {
                Ok(message) => describe::of_message(&mut line, &message),
                Err(error) => {
                    dumped.unreadable += 1;
                    line.insert("error".to_owned(), json!(error.to_string()));
                }
            }
            dumped.messages += 1;
            let line = serde_json::Value::from(line);
            writeln!(out, "{line}").map_err(InspectError::Output)
        };
    let mut queues = saved.queues.clone();
    queues.sort_by(|(_, one, _), (_, other, _)| one.cmp(other));
    saved.references.sort_by_key(|(_, reference)| (reference.queue, reference.position));
    for (number, holder, _) in queues {
        let begin = saved.references.partition_point(|(_, reference)| reference.queue < number);
        let of_queue =
            saved.references[begin..].iter().take_while(|(_, reference)| reference.queue == number);
        for (stored, reference) in of_queue {
            write(*stored, reference, Some(&holder), None)?;
        }
    }
    for transaction in &saved.transactions {
        let name = describe::transaction_name(&transaction.id);
        for operation in &transaction.operations {
            if let Operation::Send { stored, reference, .. } = operation {
                write(*stored, reference, saved.holder(reference.queue), Some(&name))?;
            }
        }
    }
    Ok(dumped)
}

//! Why is each file there?

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use super::InspectError;
use super::describe::size;
use super::look::Looked;
use super::verify::torn;
use crate::files::FileSystem;
use crate::journal::checkpoint::Place;
use crate::journal::index::{Holder, Operation, Reference, Saved};
use crate::journal::lsn::Lsn;
use crate::journal::scan::Scanned;
use crate::journal::segments::Segment;
use crate::store::StoredId;

/// Writes of each segment where it stands in the journal and why it is kept.
///
/// # Errors
/// It could not be looked at, a broker would refuse to start on it, or `out` failed.
pub fn explain(
    files: &Arc<dyn FileSystem>,
    directory: &Path,
    out: &mut dyn Write,
) -> Result<(), InspectError> {
    let looked = Looked::at(files, directory)?;
    let (saved, place, scanned) = looked.state()?;
    let explained =
        Explained { looked: &looked, needs: needs(&saved, &looked.segments.live()), saved, place, scanned };
    explained.write(out).map_err(InspectError::Output)
}

struct Explained<'a> {
    looked: &'a Looked,
    saved: Saved,
    place: Place,
    scanned: Scanned,
    /// By the base of a segment.
    needs: BTreeMap<Lsn, Need>,
}

/// Who needs a segment.
#[derive(Default)]
struct Need {
    /// Live messages of each queue.
    queues: BTreeMap<u32, u64>,
    /// Those of prepared transactions.
    prepared: u64,
    /// The message that has been there longest.
    first: Option<(Lsn, StoredId)>,
}

fn needs(saved: &Saved, segments: &[Segment]) -> BTreeMap<Lsn, Need> {
    let mut needs = BTreeMap::<Lsn, Need>::new();
    let mut note = |stored: StoredId, reference: &Reference, is_prepared: bool| {
        let behind = segments.partition_point(|segment| segment.base <= reference.lsn);
        let Some(segment) = behind.checked_sub(1).map(|at| &segments[at]) else { return };
        let need = needs.entry(segment.base).or_default();
        if is_prepared {
            need.prepared += 1;
        } else {
            *need.queues.entry(reference.queue).or_default() += 1;
        }
        let this = (reference.lsn, stored);
        need.first = Some(need.first.map_or(this, |first| first.min(this)));
    };
    saved.references.iter().for_each(|(stored, reference)| note(*stored, reference, false));
    for operation in saved.transactions.iter().flat_map(|transaction| &transaction.operations) {
        if let Operation::Send { stored, reference, .. } = operation {
            note(*stored, reference, true);
        }
    }
    needs
}

impl Explained<'_> {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let segments = &self.looked.segments;
        let live = segments.live();
        let Place { epoch, tail, .. } = self.place;
        writeln!(out, "{}", self.looked.directory.root().display())?;
        writeln!(out, "checkpoint: true up to {tail}, written by start {epoch}")?;
        let bytes = live.iter().map(|segment| segment.length).sum();
        writeln!(
            out,
            "journal: {}, up to {}",
            counted(live.len() as u64, "segment", bytes),
            self.scanned.end
        )?;
        writeln!(out, "         {} live messages on queues", self.saved.references.len())?;
        let is_subscription = |holder: &Holder| matches!(holder, Holder::Subscription { .. });
        let subscriptions = self.saved.queues.iter().filter(|(_, holder, _)| is_subscription(holder)).count();
        if subscriptions > 0 {
            writeln!(out, "         {subscriptions} durable subscriptions")?;
        }
        let spares = segments.spares() as u64;
        writeln!(out, "         {}", counted(spares, "spare", spares * segments.max_file_length()))?;
        let large = segments.large_files();
        let bytes = large.iter().map(|(_, length)| length).sum();
        writeln!(out, "         {}", counted(large.len() as u64, "large message", bytes))?;
        if let Some(cut) = self.scanned.cut.clone() {
            writeln!(out, "the next start cuts what was never confirmed: {}", torn(cut))?;
        }
        for (number, segment) in live.iter().enumerate() {
            let name = segment.path.file_name().unwrap_or_default().to_string_lossy();
            writeln!(out, "\n{name}  {} to {}, {}", segment.base, segment.end(), size(segment.length))?;
            self.write_reasons(out, segment, number + 1 == live.len())?;
        }
        Ok(())
    }

    fn write_reasons(&self, out: &mut dyn Write, segment: &Segment, is_last: bool) -> io::Result<()> {
        let need = self.needs.get(&segment.base);
        if let Some(need) = need {
            for (queue, messages) in &need.queues {
                writeln!(out, "  kept: {messages} live messages of {}", self.saved.queue_name(*queue))?;
            }
            if need.prepared > 0 {
                writeln!(out, "  kept: {} messages of prepared transactions", need.prepared)?;
            }
            if let Some((lsn, stored)) = need.first {
                writeln!(out, "        the first is message {} at {lsn}", stored.0)?;
            }
        }
        if segment.end() > self.place.tail {
            writeln!(out, "  kept: it has what is behind the checkpoint, or will have it")?;
        }
        if is_last {
            writeln!(out, "  kept: it is the last one, which is written to")?;
        }
        if need.is_none() && segment.end() <= self.place.tail && !is_last {
            writeln!(out, "  needed no more: the next checkpoint gives it up")?;
        }
        Ok(())
    }
}

fn counted(count: u64, what: &str, bytes: u64) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}, {}", size(bytes))
}

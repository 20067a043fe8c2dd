//! Damage anywhere: cut where nothing that is known to be durable is lost by it, refused by name otherwise.

use std::ops::Range;

use proptest::prelude::*;

use super::super::batch;
use super::super::reader::read_message;
use super::*;
use crate::files::{FileSystem, OpenMode};
use crate::journal::index::Reference;
use crate::store::StoreError;

const LENGTH: u64 = 4_096;

/// A journal of a few small segments, with the bytes of each batch and the messages in it.
struct Written {
    journal: Journal,
    batches: Vec<(Range<u64>, Vec<u64>)>,
    /// The LSN that the last batch knows to be durable.
    known_durable: u64,
    /// Up to which all was confirmed.
    confirmed: u64,
}

fn written() -> Written {
    let mut journal = Journal::new(LENGTH);
    let mut batches = Vec::new();
    let mut known_durable = 0;
    let mut stored = 0;
    for batch in 0..10 {
        let before = journal.writer.end().0;
        let records = (0..batch % 3 + 1).map(|_| {
            stored += 1;
            append(stored, 60 + 97 * (stored as usize % 5))
        });
        let records = records.collect::<Vec<_>>();
        known_durable = journal.writer.durable().0;
        let written = journal.write(&[records]).unwrap();
        let first = written.entries[0].lsn.0 - batch::HEADER as u64;
        assert!(first == before || first.is_multiple_of(LENGTH));
        // The zeros behind the last record are no loss.
        let end = written.entries.last().map(|entry| entry.lsn.0 + u64::from(entry.length)).unwrap();
        batches.push((first..end, appended(&written.entries)));
        if batch % 2 == 0 || batch < 6 {
            journal.writer.sync().unwrap();
        }
    }
    let confirmed = journal.writer.durable().0;
    assert!(known_durable < confirmed || confirmed < journal.writer.end().0);
    Written { journal, batches, known_durable, confirmed }
}

impl Written {
    /// All that stands before this place is there, and what is there is a beginning of what was written, or it is refused.
    fn check(&self, damaged: u64, tail: Tail, how: &str) -> bool {
        self.check_read(self.journal.read(tail), damaged, tail, how)
    }

    fn check_read(
        &self,
        read: Result<(Vec<Entry>, Scanned), ScanError>,
        damaged: u64,
        tail: Tail,
        how: &str,
    ) -> bool {
        let (start, before) = self.before(damaged);
        match read {
            Ok((entries, scanned)) => {
                let found = appended(&entries);
                let all = self.batches.iter().flat_map(|(_, stored)| stored).copied().collect::<Vec<_>>();
                assert!(all.starts_with(&found), "{how}: {found:?}");
                assert!(found.len() >= before.len(), "{how}: {found:?}");
                assert!(scanned.durable <= scanned.end, "{how}");
                false
            }
            Err(ScanError::Damaged { file, offset, .. }) => {
                let limit = self.known_durable.max(tail.durable.0);
                assert!(start < limit, "{how}: refused at {offset}, but nothing durable is lost");
                assert_eq!((file, offset), (segment(segment_of(start)), start % LENGTH), "{how}");
                true
            }
            Err(other) => panic!("{how}: {other}"),
        }
    }

    /// Where the first batch begins that ends behind this place, and the messages of those before it.
    fn before(&self, place: u64) -> (u64, Vec<u64>) {
        let before = self.batches.iter().filter(|(range, _)| range.end <= place);
        let here = self.batches.iter().find(|(range, _)| range.end > place);
        let start = here.map_or(place, |(range, _)| range.start);
        (start, before.flat_map(|(_, stored)| stored).copied().collect())
    }
}

fn segment_of(lsn: u64) -> u64 {
    lsn - lsn % LENGTH
}

#[test]
fn every_bit_of_the_last_4_kib_may_flip() {
    let written = written();
    let end = written.journal.writer.end().0;
    let tail = Tail::default();
    let mut refused = 0;
    for lsn in end - 4_096..end {
        for bit in 0..8 {
            let flip = || written.journal.files.flip(segment(segment_of(lsn)), lsn % LENGTH, bit);
            flip();
            // Not opened anew each time: the files are the same.
            let mut entries = Vec::new();
            let read = scan(&written.journal.segments, tail, |entry| entries.push(entry));
            let read = read.map(|scanned| (entries, scanned));
            refused += u32::from(written.check_read(read, lsn, tail, &format!("bit {bit} of {lsn:#x}")));
            flip();
        }
    }
    assert!(refused > 1_000, "{refused} were refused");
    assert!(!written.check(end, tail, "mended"));
}

#[test]
fn the_last_4_kib_may_be_cut_at_every_offset() {
    let mut refused = 0;
    let end = written().journal.writer.end().0;
    for lsn in end - 4_096..end {
        let written = written();
        let tail = Tail::default();
        // What follows is there first, then it is not.
        written.journal.files.truncate(segment(segment_of(lsn)), lsn % LENGTH);
        refused += u32::from(written.check(lsn, tail, &format!("cut at {lsn:#x}")));
        for later in (segment_of(lsn)..end).step_by(LENGTH as usize).skip(1) {
            written.journal.files.remove_now(segment(later));
        }
        written.check(lsn, tail, &format!("all gone from {lsn:#x}"));
        if lsn % 61 == 0 {
            goes_on(&written, lsn);
        }
    }
    assert!(refused > 100, "{refused} were refused");
}

/// What is written behind a cut comes back, and what was cut does not.
fn goes_on(written: &Written, cut: u64) {
    let Ok((entries, _)) = written.journal.read(Tail::default()) else { return };
    let files = written.journal.files.clone();
    let (mut next, ..) = Journal::resume(files, LENGTH, Tail::default());
    next.write(&[vec![append(100, 10)]]).unwrap();
    next.writer.sync().unwrap();
    let expected = [appended(&entries), vec![100]].concat();
    assert_eq!(appended(&next.read(Tail::default()).unwrap().0), expected, "cut at {cut:#x}");
}

#[test]
fn damage_below_what_the_checkpoint_knows_to_be_durable_is_refused_in_the_last_batch_too() {
    let written = written();
    let (last, _) = written.batches.last().unwrap();
    let end = written.journal.writer.end();
    let tail = Tail { durable: end, ..Tail::default() };
    assert!(!written.check(end.0, tail, "whole"));
    written.journal.files.flip(segment(segment_of(last.start)), last.start % LENGTH + 70, 0);
    let refused = written.journal.read(tail).unwrap_err().to_string();
    let file = segment(segment_of(last.start)).display().to_string();
    let place =
        format!("{file}, offset {}: the checksum of the batch there does not fit", last.start % LENGTH);
    assert!(refused.starts_with(&place), "{refused}");
    assert!(refused.contains(&format!("durable up to {end}")), "{refused}");

    let (_, scanned) = written.journal.read(Tail::default()).unwrap();
    let cut = scanned.cut.unwrap();
    assert_eq!((scanned.end.0, cut.offset), (last.start, last.start % LENGTH));
    assert!(written.confirmed >= last.start);
}

/// C-45 (c).
#[test]
fn a_missing_segment_is_named() {
    let count = written().journal.segments.live().len();
    for missing in 0..count - 1 {
        let written = written();
        let path = written.journal.segments.live()[missing].path.clone();
        written.journal.files.remove_now(&path);
        let refused = written.journal.read(Tail::default()).unwrap_err();
        assert!(matches!(&refused, ScanError::Missing { file, .. } if *file == path), "{refused}");
    }
    let written = written();
    let last = written.journal.segments.live()[count - 1].clone();
    written.journal.files.remove_now(&last.path);
    let tail = Tail { durable: written.journal.writer.end(), ..Tail::default() };
    let refused = written.journal.read(tail).unwrap_err().to_string();
    assert!(refused.contains("missing") || refused.contains("no batch begins there"), "{refused}");
}

#[test]
fn a_batch_of_a_newer_version_is_refused_and_told_from_damage() {
    let mut journal = Journal::new(LENGTH);
    journal.write(&[vec![append(1, 10)]]).unwrap();
    let mut bytes = journal.files.contents(segment(0));
    let length = u32::from_le_bytes(bytes[48..52].try_into().unwrap()) as usize;
    bytes[4] = 2;
    let file = journal.files.open(&segment(0), OpenMode::Existing).unwrap();
    file.write_all_at(&bytes, 0).unwrap();
    let (entries, scanned) = journal.read(Tail::default()).unwrap();
    assert!(entries.is_empty() && scanned.cut.is_some(), "a flipped bit is damage");
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&bytes[..56]), &bytes[60..length]);
    bytes[56..60].copy_from_slice(&checksum.to_le_bytes());
    file.write_all_at(&bytes, 0).unwrap();
    let refused = journal.read(Tail::default()).unwrap_err().to_string();
    assert!(refused.contains("newer version (journal format 2)"), "{refused}");
}

#[test]
fn no_length_that_is_read_is_believed() {
    let mut journal = Journal::new(LENGTH);
    let written = journal.write(&[vec![append(1, 10)]]).unwrap();
    journal.writer.sync().unwrap();
    let entry = &written.entries[0];
    let file = journal.files.open(&segment(0), OpenMode::Existing).unwrap();
    let damaged = |error| matches!(error, StoreError::Damaged { .. });
    // Each of these would be 4 GiB, or more than there is of memory.
    let reference = reference(entry);
    let long = Reference { length: u32::MAX, ..reference };
    let read = read_message(&journal.segments, StoredId(1), &long);
    assert!(damaged(read.unwrap_err()));
    file.write_all_at(&u32::MAX.to_le_bytes(), entry.lsn.0 + 4).unwrap();
    let read = read_message(&journal.segments, StoredId(1), &reference);
    assert!(damaged(read.unwrap_err()));
    file.write_all_at(&u32::MAX.to_le_bytes(), 48).unwrap();
    let (entries, scanned) = journal.read(Tail::default()).unwrap();
    assert!(entries.is_empty());
    assert_eq!(scanned.cut.unwrap().bytes, LENGTH, "no more than the file has");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Some of them with a header whose numbers are anything and whose checksum fits.
    #[test]
    fn no_bytes_at_all_make_a_reader_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..6_000),
        base in prop_oneof![Just(0_u64), Just(1), Just(4_096), any::<u64>()],
        headers in prop::collection::vec((0_usize..12, any::<u64>(), any::<u64>(), 0_u32..4_000, any::<u32>(), any::<bool>()), 0..4),
        from in prop_oneof![Just(0_u64), any::<u64>()],
    ) {
        for (sector, previous, durable, length, count, fits) in headers {
            let at = sector * 512;
            let Some(batch) = bytes.get_mut(at..) else { continue };
            let whole = length as usize;
            if batch.len() < whole || whole < batch::HEADER {
                continue;
            }
            batch[..6].copy_from_slice(b"CRJB\x01\0");
            batch[24..32].copy_from_slice(&base.wrapping_add(at as u64).to_le_bytes());
            batch[32..40].copy_from_slice(&if fits { base.wrapping_add(at as u64) } else { previous }.to_le_bytes());
            batch[40..48].copy_from_slice(&durable.to_le_bytes());
            batch[48..52].copy_from_slice(&length.to_le_bytes());
            batch[52..56].copy_from_slice(&count.to_le_bytes());
            let checksum = crc32c::crc32c_append(crc32c::crc32c(&batch[..56]), &batch[60..whole]);
            batch[56..60].copy_from_slice(&checksum.to_le_bytes());
        }
        let files = RecordedFiles::new();
        files.create_directory(directory()).unwrap();
        let file = files.open(&segment(base), OpenMode::New).unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        // Nothing is held that is longer than the file: lengths are compared with it before they are used.
        for tail in [Tail::default(), Tail { from: Lsn(from), ..Tail::default() }, Tail { from: Lsn(base), ..Tail::default() }] {
            let _ = open(&files, LENGTH, tail);
        }
    }

    /// A record whose checksum fits, with anything in it.
    #[test]
    fn no_record_at_all_makes_its_reader_panic(
        kind in 0_u8..8,
        fields in prop::collection::vec(prop_oneof![3 => 0_u8..4, 1 => any::<u8>()], 0..120),
    ) {
        let mut record = [b"r:".as_slice(), &[kind, 0], &(12 + fields.len() as u32).to_le_bytes(), &[0; 4], &fields].concat();
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&record[..8]), &fields);
        record[8..12].copy_from_slice(&checksum.to_le_bytes());
        let lsn = Lsn(64);
        super::super::record::place(&mut record, lsn);
        if let Ok(record) = super::super::record::record_at(&record, lsn) {
            let _ = super::super::record::read_change(record);
            let read = super::super::record::StoredMessage::read(&bytes::Bytes::copy_from_slice(record));
            if let Ok(message) = read {
                let _ = message.message(|_| Err::<Vec<u8>, &str>("no file"));
            }
        }
    }
}

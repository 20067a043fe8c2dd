//! How batches are laid out over segments, and what happens when there is no room.

use std::io;

use super::super::change::Appended;
use super::super::reader::read_message;
use super::*;
use crate::files::{Fault, Operation, Survival};
use crate::store::StoreError;

#[test]
fn a_transaction_over_five_small_segments_is_read_whole() {
    let mut journal = Journal::new(4_096);
    let transaction = local(1);
    for stored in 1..=30 {
        journal.write(&[vec![within(&transaction, stored, 500)]]).unwrap();
    }
    journal.write(&[vec![StoreOperation::Commit(transaction.clone())]]).unwrap();
    journal.writer.sync().unwrap();
    assert!(journal.segments.live().len() >= 5, "{:?}", journal.segments.live());
    let (entries, scanned) = journal.read(Tail::default()).unwrap();
    assert_eq!(appended(&entries), (1..=30).collect::<Vec<_>>());
    assert_eq!(entries.last().map(|entry| &entry.change), Some(&Change::Commit(transaction)));
    assert_eq!((scanned.records, scanned.end), (31, journal.writer.end()));
}

#[test]
fn what_was_submitted_together_is_in_one_batch_where_a_segment_has_room_for_it() {
    let mut journal = Journal::new(4_096);
    journal.write(&[vec![append(1, 600)], vec![append(2, 600)], vec![append(3, 600)]]).unwrap();
    assert_eq!(journal.segments.live().len(), 1, "what waits is one batch");
    let together = (4..8).map(|stored| append(stored, 700)).collect::<Vec<_>>();
    let written = journal.write(&[together]).unwrap();
    assert!(written.entries.iter().all(|entry| (0x1000..0x2000).contains(&entry.lsn.0)), "{written:?}");
    assert_eq!(appended(&journal.read(Tail::default()).unwrap().0), (1..8).collect::<Vec<_>>());
}

#[test]
fn what_was_submitted_together_and_is_larger_than_a_segment_is_taken_whole_or_not_at_all() {
    let whole = {
        let mut journal = Journal::new(4_096);
        journal.write(&[vec![append(1, 100)]]).unwrap();
        journal.writer.sync().unwrap();
        let before = journal.files.operations();
        let together = (2..40).map(|stored| append(stored, 700)).collect::<Vec<_>>();
        journal.write(&[vec![append(100, 1)], together, vec![append(101, 1)]]).unwrap();
        journal.writer.sync().unwrap();
        assert!(journal.segments.live().len() > 5);
        before..journal.files.operations()
    };
    let mut seen = Vec::new();
    for crash in whole {
        let mut journal = Journal::new(4_096);
        journal.write(&[vec![append(1, 100)]]).unwrap();
        journal.writer.sync().unwrap();
        journal.files.crash_at(crash, 7);
        let together = (2..40).map(|stored| append(stored, 700)).collect::<Vec<_>>();
        let written = journal.write(&[vec![append(100, 1)], together, vec![append(101, 1)]]);
        assert!(written.is_err() || journal.writer.sync().is_err());
        for survival in [Survival::Process, Survival::PowerCut { seed: crash }] {
            let files = journal.files.survive(survival);
            let (mut next, entries, _) = Journal::resume(files, 4_096, Tail::default());
            let found = appended(&entries);
            assert_eq!(found[0], 1, "crash at {crash}");
            let of_together = found.iter().filter(|stored| (2..40).contains(*stored)).count();
            assert!(of_together == 0 || of_together == 38, "crash at {crash}: {found:?}");
            seen.push(found.len());
            next.write(&[vec![append(200, 10)]]).unwrap();
            next.writer.sync().unwrap();
            let again = appended(&next.read(Tail::default()).unwrap().0);
            assert_eq!(again, [found, vec![200]].concat(), "crash at {crash}");
        }
    }
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() >= 3, "the crash came at several places: {seen:?}");
}

#[test]
fn a_large_body_is_in_a_file_of_its_own_and_its_damage_is_named() {
    let mut journal = Journal::new(4_096);
    let written = journal.write(&[vec![append(1, 100_000), append(2, 10)]]).unwrap();
    let entry = &written.entries[0];
    let Change::Append(Appended { large: Some(large), .. }) = entry.change else { panic!("{entry:?}") };
    assert!(entry.length < 200);
    assert_eq!(journal.segments.large_files(), [(StoredId(1), large.length)]);
    let read = || read_message(&journal.segments, StoredId(1), &reference(entry));
    assert_eq!(read().unwrap().as_text().unwrap().map(str::len), Some(100_000));
    let file = journal.segments.large_path(StoredId(1));
    journal.files.flip(&file, 70_000, 3);
    assert_eq!(
        read().unwrap_err(),
        StoreError::Damaged {
            place: "/data/journal/0000000000000001.large, offset 0".to_owned(),
            reason: "the checksum of the file of its own does not fit".to_owned(),
        }
    );
    journal.files.truncate(&file, 9);
    assert!(matches!(read(), Err(StoreError::Damaged { .. })));
    journal.segments.remove_large(StoredId(1)).unwrap();
    assert!(matches!(read(), Err(StoreError::Damaged { .. })));
    assert_eq!(journal.segments.large_files(), []);
}

/// A message of 200 MB is in memory as the message and as the bytes to be written, and not once more.
#[test]
fn a_large_body_is_copied_once_while_it_is_written() {
    const BODY: usize = 20 << 20;
    let mut bytes = Vec::new();
    let (_, large) = super::super::record::put_record(&mut bytes, &append(1, BODY), 1_024).unwrap();
    let rest = large.unwrap().bytes;
    assert!(rest.len() > BODY);
    assert!(rest.capacity() < BODY + BODY / 8, "{} bytes are reserved for {BODY}", rest.capacity());
    assert!(bytes.capacity() < 4_096, "{} bytes are reserved for the record", bytes.capacity());
}

#[test]
fn a_name_that_no_record_has_room_for_is_refused() {
    let long = StoreTransaction::Local(ConnectionId::foreign(&"c".repeat(2_000)), 1);
    let refused = Encoded::new(&[StoreOperation::Commit(long)], 1_024).unwrap_err();
    assert!(refused.to_string().contains("1024 are allowed"), "{refused}");
}

#[test]
fn a_full_disk_writes_nothing_and_two_spares_are_there_for_what_ends_messages() {
    let mut journal = Journal::new(4_096);
    for _ in 0..3 {
        journal.segments.prepare_spare().unwrap();
    }
    journal.files.limit(Some(3 * 4_096));
    let send = |stored| [Encoded::new(&[append(stored, 900)], 1_024).unwrap()];
    let mut sent = 0;
    let full = loop {
        match journal.writer.write(&send(sent), Claim::Sends) {
            Ok(_) => sent += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, WriteError::Full { .. }), "{full}");
    assert_eq!((sent, journal.segments.spares()), (2, Segments::RESERVE));
    let before = journal.writer.end();
    let large = [Encoded::new(&[append(98, 10), append(99, 5_000)], 1_024).unwrap()];
    assert!(matches!(journal.writer.write(&large, Claim::Ends), Err(WriteError::Full { .. })));
    assert_eq!((journal.writer.end(), journal.segments.large_files()), (before, vec![]));

    let acknowledge = StoreOperation::DeliveryState { stored: StoredId(0), state: Default::default() };
    let mut settled = 0;
    while let Ok(_written) = journal.write(&[vec![acknowledge.clone(); 20]]) {
        settled += 20;
    }
    assert_eq!(journal.segments.spares(), 0);
    journal.writer.sync().unwrap();
    let (entries, _) = journal.read(Tail::default()).unwrap();
    assert_eq!(entries.len(), sent as usize + settled, "what was refused is not there, all else is");
    journal.files.limit(None);
    journal.writer.write(&send(7), Claim::Sends).unwrap();
    assert_eq!(journal.segments.spares(), Segments::RESERVE);
    assert_eq!(appended(&journal.read(Tail::default()).unwrap().0), [0, 1, 7]);
}

#[test]
fn an_unfinished_spare_is_removed_and_its_room_given_back() {
    let journal = Journal::new(4_096);
    journal.files.fail(Fault {
        operation: Operation::Write,
        nth: 1,
        error: io::ErrorKind::StorageFull,
        lasting: false,
    });
    assert_eq!(journal.segments.prepare_spare().unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(journal.files.paths(), Vec::<PathBuf>::new());
    assert!(journal.segments.live().is_empty() && journal.segments.spares() == 0);

    journal.segments.prepare_spare().unwrap();
    journal.files.crash_at(journal.files.operations() + 2, 1);
    assert!(journal.segments.prepare_spare().is_err());
    let files = journal.files.survive(Survival::Process);
    assert_eq!(files.paths().len(), 2);
    let (next, ..) = Journal::resume(files, 4_096, Tail::default());
    assert_eq!((next.files.paths().len(), next.segments.spares()), (1, 1));
}

#[test]
fn a_failed_write_and_a_failed_sync_are_told_with_their_place() {
    for operation in [Operation::Write, Operation::SyncData] {
        let mut journal = Journal::new(4_096);
        journal.write(&[vec![append(1, 10)]]).unwrap();
        journal.writer.sync().unwrap();
        journal.files.fail(Fault { operation, nth: 1, error: io::ErrorKind::Other, lasting: false });
        let failed = match journal.write(&[vec![append(2, 10)]]) {
            Ok(_) => journal.writer.sync().unwrap_err(),
            Err(error) => error,
        };
        let WriteError::Io { path, offset, .. } = failed else { panic!("{failed}") };
        assert_eq!((path, offset), (segment(0), 512));
    }
}

#[test]
fn segments_of_another_length_are_read_and_gone_on_from() {
    let mut journal = Journal::new(4_096);
    for stored in 1..=12 {
        journal.write(&[vec![append(stored, 900)]]).unwrap();
    }
    journal.writer.sync().unwrap();
    let (mut longer, entries, _) = Journal::resume(journal.files, 16_384, Tail::default());
    assert_eq!(appended(&entries), (1..=12).collect::<Vec<_>>());
    for stored in 13..=40 {
        longer.write(&[vec![append(stored, 900)]]).unwrap();
    }
    longer.writer.sync().unwrap();
    let (mut shorter, entries, _) = Journal::resume(longer.files, 4_096, Tail::default());
    assert_eq!(appended(&entries), (1..=40).collect::<Vec<_>>());
    for stored in 41..=60 {
        shorter.write(&[vec![append(stored, 900)]]).unwrap();
    }
    shorter.writer.sync().unwrap();
    assert_eq!(appended(&shorter.read(Tail::default()).unwrap().0), (1..=60).collect::<Vec<_>>());
}

#[test]
fn the_last_segment_is_not_recycled_and_others_are_spares_or_archived() {
    let mut journal = Journal::new(4_096);
    for stored in 1..=12 {
        journal.write(&[vec![append(stored, 900)]]).unwrap();
    }
    let live = journal.segments.live();
    let last = live.last().unwrap().base;
    assert_eq!(journal.segments.recycle(last, None).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    let spares = journal.segments.spares();
    journal.segments.recycle(live[0].base, None).unwrap();
    assert_eq!(journal.segments.spares(), spares + 1);
    let archive = Path::new("/data/archive");
    let before = journal.files.contents(&live[1].path);
    journal.segments.recycle(live[1].base, Some(archive)).unwrap();
    assert_eq!(journal.files.contents(archive.join(live[1].path.file_name().unwrap())), before);
    assert_eq!(journal.segments.live(), live[2..]);
}

/// Wherever it ends, one of the two places has all of it.
#[test]
fn a_segment_is_archived_on_another_device_and_nothing_is_lost_wherever_the_process_ends() {
    let archive = Path::new("/archive");
    let begun = || {
        let mut journal = Journal::new(4_096);
        for stored in 1..=6 {
            journal.write(&[vec![append(stored, 900)]]).unwrap();
        }
        journal.writer.sync().unwrap();
        journal.files.put_on_device(archive);
        journal
    };
    let within = |files: &RecordedFiles, path: &Path| files.paths().iter().any(|there| there == path);
    let to = archive.join(segment(0).file_name().unwrap());
    for crash in 1.. {
        let journal = begun();
        let expected = journal.files.contents(segment(0));
        journal.files.crash_at(journal.files.operations() + crash, crash);
        let archived = journal.segments.recycle(Lsn(0), Some(archive));
        for survival in [Survival::Process, Survival::PowerCut { seed: crash }, Survival::OnlySynced] {
            let files = journal.files.survive(survival);
            let copies = [segment(0), to.clone()].into_iter().filter(|path| within(&files, path));
            let copies: Vec<_> = copies.map(|path| files.contents(path)).collect();
            assert!(!copies.is_empty(), "crash at {crash}, {survival:?}: it is gone");
            assert!(copies.iter().all(|copy| *copy == expected), "crash at {crash}, {survival:?}");
            if within(&files, &segment(0)) {
                let (next, ..) = Journal::resume(files, 4_096, Tail::default());
                next.segments.recycle(Lsn(0), Some(archive)).unwrap();
                assert!(!within(&next.files, &segment(0)));
                assert_eq!(next.files.contents(&to), expected);
                assert!(next.files.paths().iter().all(|path| path.extension().unwrap() == "journal"));
            }
        }
        if archived.is_ok() {
            assert!(crash > 5, "{crash}");
            break;
        }
    }
}

#[test]
fn an_archive_that_fails_keeps_the_segment_and_takes_it_the_next_time() {
    let archive = Path::new("/archive");
    for is_other_device in [true, false] {
        for operation in [Operation::Write, Operation::SyncData, Operation::SyncDirectory, Operation::Remove]
        {
            let mut journal = Journal::new(4_096);
            for stored in 1..=6 {
                journal.write(&[vec![append(stored, 900)]]).unwrap();
            }
            if is_other_device {
                journal.files.put_on_device(archive);
            }
            let expected = journal.files.contents(segment(0));
            let error = io::ErrorKind::StorageFull;
            journal.files.fail(Fault { operation, nth: 1, error, lasting: false });
            if journal.segments.recycle(Lsn(0), Some(archive)).is_err() {
                assert_eq!(journal.segments.live()[0].base, Lsn(0), "{operation:?}");
                journal.segments.recycle(Lsn(0), Some(archive)).unwrap();
            }
            assert_eq!(journal.segments.live()[0].base, Lsn(4_096), "{operation:?}");
            assert_eq!(journal.files.contents(archive.join(segment(0).file_name().unwrap())), expected);
            let archived = journal.files.paths().into_iter().filter(|path| path.starts_with(archive)).count();
            assert_eq!(archived, 1, "{operation:?}");
        }
    }
}

#[test]
fn a_segment_is_never_so_long_that_a_batch_could_not_say_its_length() {
    let files = RecordedFiles::new();
    let segments = Segments::open(Arc::new(files), directory(), u64::MAX).unwrap();
    assert!(u32::try_from(segments.max_file_length()).is_ok());
}

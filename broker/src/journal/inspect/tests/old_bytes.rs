//! What an earlier life has left behind its cut, where a later one did not write over it: in the rest of a segment that
//! was too small for what came next.

use super::*;

/// Where the batches of the first segment begin.
fn batches(files: &RecordedFiles) -> Vec<u64> {
    let bytes = files.contents(&segments(files, DIRECTORY)[0]);
    let sectors = (0..).step_by(512).zip(bytes.chunks(512));
    sectors.filter(|(_, sector)| sector.starts_with(b"CRJB")).map(|(at, _)| at).collect()
}

/// The next process cuts the journal at the batch of this number, which a power cut has torn.
fn torn(files: &RecordedFiles, batch: usize) -> JournalStore {
    let (first, at) = (segments(files, DIRECTORY)[0].clone(), batches(files)[batch]);
    files.flip(&first, at + 70, 1);
    open(files, DIRECTORY).unwrap_or_else(|error| panic!("{error}"))
}

/// So much at once that it begins the next segment.
fn go_on(store: &JournalStore) {
    run(store, (11..=15).map(|stored| append(stored, 560, None)).collect());
    send(store, 16);
    send(store, 17);
}

/// Two messages whose acknowledgements a power cut took: the first of these is torn, the second one is whole.
fn acknowledged_and_cut() -> RecordedFiles {
    let files = RecordedFiles::new();
    let store = open(&files, DIRECTORY).unwrap();
    send(&store, 1);
    send(&store, 2);
    acknowledge(&store, 1);
    acknowledge(&store, 2);
    kill(store, &files)
}

#[test]
fn an_acknowledgement_that_was_cut_does_not_come_back_without_the_checkpoint() {
    let files = acknowledged_and_cut();
    let store = torn(&files, 2);
    go_on(&store);
    let files = kill(store, &files);
    assert_eq!(batches(&files).len(), 4, "nothing was written over them");
    let all = in_order([1, 2].into_iter().chain(11..=17));
    let verified = verify(&looked_at(&files), Path::new(DIRECTORY)).unwrap();
    assert_eq!(verified.findings, [], "it is whole");
    assert_eq!(names(&started(&files, DIRECTORY).0), all);

    let files = files.survive(Survival::Process);
    files.remove_now(file("kr-store/state"));
    let (repaired, recovered) = repaired(&files);
    assert_eq!(names(&recovered), all);
    assert_eq!(repaired.lost, []);
}

#[test]
fn a_part_of_what_was_submitted_together_does_not_come_back_without_the_checkpoint() {
    let files = RecordedFiles::new();
    let store = open(&files, DIRECTORY).unwrap();
    send(&store, 1);
    send(&store, 2);
    // Its first batch fills the rest of this segment, the second one never reached the disk.
    run(&store, (3..=10).map(|stored| append(stored, 560, None)).collect());
    let files = kill(store, &files);
    files.remove_now(&segments(&files, DIRECTORY)[1]);
    let before = files.contents(&segments(&files, DIRECTORY)[0]);
    let store = open(&files, DIRECTORY).unwrap();
    assert_eq!(names(&store.recover()), [1, 2]);
    go_on(&store);
    let files = kill(store, &files);
    assert_eq!(files.contents(&segments(&files, DIRECTORY)[0]), before, "nothing was written over it");
    let all = in_order([1, 2].into_iter().chain(11..=17));
    assert_eq!(verify(&looked_at(&files), Path::new(DIRECTORY)).unwrap().findings, []);

    files.remove_now(file("kr-store/state"));
    let (repaired, recovered) = repaired(&files);
    assert_eq!(names(&recovered), all);
    assert_eq!(repaired.lost, []);
}

/// The batch that says from where to where nothing stood is damaged itself; the old one is known by its epoch.
#[test]
fn old_batches_are_not_salvaged_out_of_damaged_bytes() {
    let files = RecordedFiles::new();
    let store = open(&files, DIRECTORY).unwrap();
    send(&store, 1);
    acknowledge(&store, 9);
    acknowledge(&store, 9);
    acknowledge(&store, 1);
    let files = kill(store, &files);
    let store = torn(&files, 1);
    acknowledge(&store, 9);
    let files = kill(store, &files);
    let store = open(&files, DIRECTORY).unwrap();
    go_on(&store);
    let files = kill(store, &files);
    assert_eq!(batches(&files).len(), 4, "the last one is of the first life");
    files.flip(&segments(&files, DIRECTORY)[1], 20, 1);
    files.remove_now(file("kr-store/state"));
    let (repaired, recovered) = repaired(&files);
    assert_eq!(names(&recovered), in_order([1].into_iter().chain(11..=17)));
    let [damage] = &*repaired.lost else { panic!("{repaired:?}") };
    assert!(damage.what.contains("5 records in there are whole"), "{damage}");
}

//! What is lost and what is not, and that a seed decides it.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{Fault, Operation, RecordedFiles, Survival};
use crate::files::{DataFile, FileSystem, LockError, OpenMode};

const DIRECTORY: &str = "/data";
const FILE: &str = "/data/file";

/// A file of durable name that has so many durable sectors of ones.
fn synced(sectors: usize) -> (RecordedFiles, Arc<dyn DataFile>) {
    let files = RecordedFiles::new();
    files.create_directory(Path::new(DIRECTORY)).unwrap();
    let file = files.open(Path::new(FILE), OpenMode::New).unwrap();
    file.write_all_at(&vec![1; sectors * 512], 0).unwrap();
    file.sync_data().unwrap();
    files.sync_directory(Path::new(DIRECTORY)).unwrap();
    (files, file)
}

/// Everything that a hundred power cuts leave of the file.
fn survivors(files: &RecordedFiles) -> BTreeSet<Vec<u8>> {
    let cut = |seed| files.survive(Survival::PowerCut { seed });
    (0..100).map(|seed| cut(seed).contents(FILE)).collect()
}

#[test]
fn what_was_written_survives_the_process_but_not_for_sure_a_power_cut() {
    let (files, file) = synced(1);
    file.write_all_at(&[2; 512], 0).unwrap();
    assert_eq!(files.survive(Survival::Process).contents(FILE), [2; 512]);
    assert_eq!(files.survive(Survival::OnlySynced).contents(FILE), [1; 512]);
    assert_eq!(survivors(&files), BTreeSet::from([vec![1; 512], vec![2; 512]]));
}

#[test]
fn what_the_next_process_finds_unsynced_is_still_unsynced() {
    let (files, file) = synced(1);
    file.write_all_at(&[2; 512], 0).unwrap();
    files.rename(Path::new(FILE), Path::new("/data/renamed")).unwrap();
    let next = files.survive(Survival::Process);
    assert_eq!(next.contents("/data/renamed"), [2; 512]);
    assert_eq!(next.survive(Survival::OnlySynced).contents(FILE), [1; 512]);

    let next = files.survive(Survival::Process);
    next.open(Path::new("/data/renamed"), OpenMode::Existing).unwrap().sync_data().unwrap();
    assert_eq!(next.survive(Survival::OnlySynced).contents(FILE), [2; 512]);
}

#[test]
fn a_sector_written_several_times_survives_as_any_of_its_versions() {
    let (files, file) = synced(1);
    for version in 2..=4 {
        file.write_all_at(&[version; 512], 0).unwrap();
    }
    let versions: BTreeSet<_> = (1..=4).map(|version| vec![version; 512]).collect();
    assert_eq!(survivors(&files), versions);
}

#[test]
fn sectors_of_one_write_survive_each_by_itself_and_as_a_whole() {
    let (files, file) = synced(2);
    file.write_all_at(&[2; 1024], 0).unwrap();
    let mixed = |one: u8, other: u8| [[one; 512], [other; 512]].concat();
    assert_eq!(survivors(&files), BTreeSet::from([mixed(1, 1), mixed(1, 2), mixed(2, 1), mixed(2, 2)]));
}

#[test]
fn a_sync_makes_content_and_length_durable() {
    let (files, file) = synced(1);
    file.write_all_at(&[2; 1000], 100).unwrap();
    file.sync_data().unwrap();
    let content = [vec![1; 100], vec![2; 1000]].concat();
    assert_eq!(files.survive(Survival::OnlySynced).contents(FILE), content);
    assert_eq!(survivors(&files), BTreeSet::from([content]));
}

#[test]
fn a_length_may_survive_without_its_bytes_and_the_other_way_round() {
    let (files, file) = synced(0);
    file.write_all_at(&[2; 600], 0).unwrap();
    let survivors = survivors(&files);
    assert!(survivors.contains(&vec![]), "nothing");
    assert!(survivors.contains(&vec![0; 600]), "the length alone");
    assert!(survivors.contains(&vec![2; 600]), "all");
    assert!(survivors.contains(&[vec![0; 512], vec![2; 88]].concat()), "a part");
}

#[test]
fn bytes_that_a_shorter_length_cut_do_not_come_back() {
    let (files, file) = synced(3);
    file.set_len(700).unwrap();
    file.sync_data().unwrap();
    file.set_len(1536).unwrap();
    file.sync_data().unwrap();
    let content = [vec![1; 700], vec![0; 836]].concat();
    assert_eq!(files.survive(Survival::OnlySynced).contents(FILE), content);
}

#[test]
fn the_same_bytes_written_anew_make_up_for_a_failed_sync() {
    for (is_written_anew, left) in [(false, 1), (true, 2)] {
        let (files, file) = synced(1);
        file.write_all_at(&[2; 512], 0).unwrap();
        files.fail(Fault {
            operation: Operation::SyncData,
            nth: 1,
            error: io::ErrorKind::Other,
            lasting: false,
        });
        assert!(file.sync_data().is_err());
        if is_written_anew {
            file.write_all_at(&[2; 512], 0).unwrap();
        }
        file.sync_data().unwrap();
        assert_eq!(files.survive(Survival::OnlySynced).contents(FILE), [left; 512]);
    }
}

#[test]
fn a_synced_file_is_gone_when_its_name_was_not_synced() {
    let files = RecordedFiles::new();
    files.create_directory(Path::new(DIRECTORY)).unwrap();
    let file = files.open(Path::new(FILE), OpenMode::New).unwrap();
    file.write_all_at(b"content", 0).unwrap();
    file.sync_data().unwrap();
    assert!(files.survive(Survival::OnlySynced).paths().is_empty());
    assert_eq!(files.survive(Survival::Process).contents(FILE), b"content");
    let cut = |seed| files.survive(Survival::PowerCut { seed }).paths().len();
    assert_eq!((0..50).map(cut).collect::<BTreeSet<_>>(), BTreeSet::from([0, 1]));
}

#[test]
fn a_name_does_not_make_the_content_durable() {
    let files = RecordedFiles::new();
    files.create_directory(Path::new(DIRECTORY)).unwrap();
    let file = files.open(Path::new(FILE), OpenMode::New).unwrap();
    file.write_all_at(b"content", 0).unwrap();
    files.sync_directory(Path::new(DIRECTORY)).unwrap();
    assert_eq!(files.survive(Survival::OnlySynced).contents(FILE), b"");
}

#[test]
fn unsynced_changes_of_names_survive_in_their_order() {
    let (files, _) = synced(1);
    let path = |name: &str| Path::new(DIRECTORY).join(name);
    files.rename(Path::new(FILE), &path("a")).unwrap();
    files.open(&path("b"), OpenMode::New).unwrap();
    files.remove(&path("a")).unwrap();
    let names = |files: RecordedFiles| {
        let paths = files.paths();
        paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let found: BTreeSet<_> =
        (0..100).map(|seed| names(files.survive(Survival::PowerCut { seed }))).map(|n| n.join(" ")).collect();
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), ["a", "a b", "b", "file"]);
}

#[test]
fn syncing_one_directory_leaves_the_names_of_another_unsynced() {
    let (files, _) = synced(1);
    for name in ["/data/journal", "/data/archive"] {
        files.create_directory(Path::new(name)).unwrap();
    }
    files.open(Path::new("/data/journal/other"), OpenMode::New).unwrap();
    files.open(Path::new("/data/journal/moved"), OpenMode::New).unwrap();
    files.rename(Path::new("/data/journal/moved"), Path::new("/data/archive/moved")).unwrap();
    files.sync_directory(Path::new("/data/archive")).unwrap();
    let paths = files.survive(Survival::OnlySynced).paths();
    assert_eq!(paths, [Path::new("/data/archive/moved"), Path::new(FILE)]);
}

#[test]
fn everything_fails_once_the_process_has_ended() {
    let (files, file) = synced(1);
    let held = files.lock(Path::new("/data/lock"), "this process").unwrap();
    let next = files.survive(Survival::Process);
    file.len().unwrap_err();
    file.read_exact_at(&mut [0], 0).unwrap_err();
    file.write_all_at(&[2], 0).unwrap_err();
    file.set_len(0).unwrap_err();
    file.sync_data().unwrap_err();
    files.list(Path::new(DIRECTORY)).unwrap_err();
    files.open(Path::new(FILE), OpenMode::Existing).unwrap_err();
    files.create_directory(Path::new("/other")).unwrap_err();
    files.rename(Path::new(FILE), Path::new("/data/other")).unwrap_err();
    files.remove(Path::new(FILE)).unwrap_err();
    files.sync_directory(Path::new(DIRECTORY)).unwrap_err();
    assert!(matches!(files.lock(Path::new("/data/lock"), "again"), Err(LockError::Io(_))));
    drop(next.lock(Path::new("/data/lock"), "the next process").unwrap());
    drop(held);
    assert_eq!(next.contents(FILE), [1; 512]);
}

#[test]
fn a_crash_in_a_write_leaves_some_of_its_sectors_as_the_seed_says() {
    let torn = |seed| {
        let (files, file) = synced(4);
        let before = files.operations();
        files.crash_at(before + 2, seed);
        file.write_all_at(&[2; 2048], 0).unwrap();
        file.write_all_at(&[3; 2048], 0).unwrap_err();
        file.sync_data().unwrap_err();
        file.read_exact_at(&mut [0], 0).unwrap_err();
        assert_eq!(files.operations(), before + 2, "{:?}", files.log());
        files.survive(Survival::Process).contents(FILE)
    };
    let found: BTreeSet<_> = (0..200).map(torn).collect();
    assert_eq!(found.len(), 16, "each sector by itself");
    assert_eq!(torn(7), torn(7));
}

#[test]
fn a_crash_in_a_sync_or_in_a_change_of_names_does_nothing() {
    let (files, file) = synced(1);
    file.write_all_at(&[2; 512], 0).unwrap();
    files.crash_at(files.operations() + 1, 0);
    file.sync_data().unwrap_err();
    assert_eq!(files.survive(Survival::OnlySynced).contents(FILE), [1; 512]);

    let (files, _) = synced(1);
    files.crash_at(files.operations() + 1, 0);
    files.rename(Path::new(FILE), Path::new("/data/other")).unwrap_err();
    assert_eq!(files.survive(Survival::Process).paths(), [Path::new(FILE)]);
}

#[test]
fn a_fault_hits_the_operation_that_it_was_asked_for() {
    let (files, file) = synced(4);
    let error = io::ErrorKind::TimedOut;
    files.fail(Fault { operation: Operation::Write, nth: 2, error, lasting: false });
    file.write_all_at(&[2; 2048], 0).unwrap();
    assert_eq!(file.write_all_at(&[3; 2048], 0).unwrap_err().kind(), error);
    assert_eq!(files.contents(FILE), [[3; 1024], [2; 1024]].concat(), "half of it");
    file.write_all_at(&[4; 2048], 0).unwrap();

    files.fail(Fault { operation: Operation::Read, nth: 1, error, lasting: true });
    for _ in 0..3 {
        assert_eq!(file.read_exact_at(&mut [0], 0).unwrap_err().kind(), error);
    }
    assert!(files.log().iter().any(|line| line.contains("fails: timed out")), "{:?}", files.log());
}

#[test]
fn what_a_failed_sync_was_to_make_durable_is_not_made_so_by_the_next_one() {
    let (files, file) = synced(2);
    files.fail(Fault { operation: Operation::SyncData, nth: 1, error: io::ErrorKind::Other, lasting: false });
    file.write_all_at(&[2; 1024], 0).unwrap();
    file.sync_data().unwrap_err();
    file.write_all_at(&[3; 512], 0).unwrap();
    file.sync_data().unwrap();
    // The second sector was not written anew.
    assert_eq!(files.survive(Survival::OnlySynced).contents(FILE), [[3; 512], [1; 512]].concat());
}

#[test]
fn files_grow_to_the_limit_and_not_beyond() {
    let (files, file) = synced(2);
    files.limit(Some(2048));
    let other = files.open(Path::new("/data/other"), OpenMode::New).unwrap();
    other.write_all_at(&[1; 1000], 0).unwrap();
    assert_eq!(other.write_all_at(&[1; 25], 1000).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(file.set_len(1049).unwrap_err().kind(), io::ErrorKind::StorageFull);
    file.write_all_at(&[2; 1024], 0).unwrap();
    files.remove(Path::new("/data/other")).unwrap();
    file.set_len(2048).unwrap();
}

#[test]
fn damage_is_as_if_it_had_always_been_there() {
    let (files, file) = synced(2);
    file.write_all_at(&[2; 1024], 0).unwrap();
    files.flip(FILE, 3, 0);
    let survived = files.survive(Survival::OnlySynced);
    assert_eq!(survived.contents(FILE)[..5], [2, 2, 2, 3, 2]);
    assert_eq!(survived.contents(FILE)[512..], [1; 512]);

    let (files, file) = synced(2);
    file.write_all_at(&[2; 1024], 0).unwrap();
    files.truncate(FILE, 100);
    assert_eq!(files.contents(FILE), [2; 100]);
    assert_eq!(files.survive(Survival::OnlySynced).contents(FILE), [2; 100]);

    let (files, _) = synced(2);
    files.remove_now(FILE);
    assert!(files.survive(Survival::Process).paths().is_empty());
}

#[test]
fn a_segment_filled_with_zeros_costs_next_to_nothing() {
    let (files, file) = synced(1);
    file.write_all_at(&vec![0; 32 << 20], 512).unwrap();
    file.sync_data().unwrap();
    file.write_all_at(&[5; 512], 16 << 20).unwrap();
    let node = files.node(Path::new(FILE));
    assert_eq!(super::lock(&node).sectors_in_memory(), 2);
    assert_eq!(files.survive(Survival::OnlySynced).contents(FILE).len(), (32 << 20) + 512);
}

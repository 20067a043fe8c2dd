//! What the store relies on holds for files on a disk as for recorded ones.

use std::io;
use std::path::Path;

use super::{DataFile, Disk, FileSystem, LockError, OpenMode, RecordedFiles};

#[test]
fn a_disk_and_recorded_files_do_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let on_disk = script(&Disk, directory.path());
    let recorded = script(&RecordedFiles::new(), Path::new("/somewhere"));
    for (number, (disk, recorded)) in on_disk.iter().zip(&recorded).enumerate() {
        assert_eq!(disk, recorded, "step {number}");
    }
    assert_eq!(on_disk.len(), recorded.len());
}

#[test]
fn a_relative_directory_is_made_with_all_above_it() {
    let files = RecordedFiles::new();
    files.create_directory(Path::new("data/local/journal")).unwrap();
    files.open(Path::new("data/local/lock"), OpenMode::New).unwrap();
    files.sync_directory(Path::new("data")).unwrap();
    assert_eq!(files.paths(), [Path::new("data/local/lock")]);
}

/// One line for each step: what it gave.
fn script(files: &dyn FileSystem, root: &Path) -> Vec<String> {
    let mut steps = Vec::new();
    let mut step = |outcome: String| steps.push(outcome);
    let data = root.join("data/local");
    let (one, other) = (data.join("one"), data.join("other"));

    step(outcome(files.list(&data)));
    step(outcome(files.open(&one, OpenMode::Any)));
    step(outcome(files.sync_directory(&data)));
    step(outcome(files.create_directory(&data)));
    step(outcome(files.create_directory(&data)));
    step(outcome(files.list(&data)));
    step(outcome(files.open(&one, OpenMode::Existing)));
    let file = files.open(&one, OpenMode::New).unwrap();
    step(outcome(files.open(&one, OpenMode::New)));
    step(outcome(files.open(&data, OpenMode::Existing)));

    step(outcome(file.write_all_at(b"across a sector's end", 500)));
    step(bytes(&*file, 0));
    step(outcome(file.write_all_at(&[7; 3000], 2000)));
    step(bytes(&*file, 0));
    step(bytes(&*file, 1999));
    step(outcome(file.set_len(2049)));
    step(bytes(&*file, 400));
    step(outcome(file.set_len(9000)));
    step(bytes(&*file, 400));
    step(outcome(file.write_all_at(&[0; 4000], 600)));
    step(outcome(file.write_all_at(b"", 20_000)));
    step(bytes(&*file, 0));
    step(outcome(file.read_exact_at(&mut [0; 2], 8999)));
    step(outcome(file.read_exact_at(&mut [0; 1], u64::MAX / 4)));
    step(outcome(file.sync_data()));
    step(format!("{:?} {:?}", file.len().unwrap(), file.is_empty().unwrap()));

    step(outcome(files.rename(&one, &other)));
    step(outcome(files.rename(&one, &other)));
    step(outcome(files.rename(&other, &root.join("nowhere/other"))));
    step(outcome(files.rename(&other, &other)));
    step(outcome(files.list(&data)));
    // What was opened stays open whatever becomes of its name.
    step(outcome(file.write_all_at(b"renamed", 0)));
    let again = files.open(&other, OpenMode::Any).unwrap();
    step(bytes(&*again, 0));
    let replacing = files.open(&one, OpenMode::Any).unwrap();
    step(outcome(replacing.write_all_at(b"replacing", 0)));
    step(outcome(files.rename(&one, &other)));
    step(bytes(&*again, 8990));
    step(bytes(&*files.open(&other, OpenMode::Existing).unwrap(), 0));
    step(outcome(files.remove(&other)));
    step(outcome(files.remove(&other)));
    step(bytes(&*replacing, 0));
    step(outcome(replacing.sync_data()));
    step(outcome(files.sync_directory(&data)));
    step(outcome(files.list(&data)));
    step(outcome(files.list(root)));

    let lock = data.join("lock");
    let held = files.lock(&lock, "the first, which has a long name").unwrap();
    step(holder(files.lock(&lock, "another")));
    drop(held);
    step(holder(files.lock(&lock, "another")));
    step(outcome(files.list(&data)));
    step(bytes(&*files.open(&lock, OpenMode::Existing).unwrap(), 0));
    steps
}

/// Values as they are, errors by their kind: their texts are each system's own.
fn outcome<T: std::fmt::Debug>(result: io::Result<T>) -> String {
    match result {
        Ok(value) if std::any::type_name::<T>().contains("DataFile") => {
            drop(value);
            "a file".to_owned()
        }
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{:?}", error.kind()),
    }
}

fn bytes(file: &dyn DataFile, from: u64) -> String {
    let length = file.len().unwrap();
    let mut bytes = vec![1; usize::try_from(length - from).unwrap()];
    file.read_exact_at(&mut bytes, from).unwrap();
    format!("{length} {bytes:?}")
}

fn holder<T>(result: Result<T, LockError>) -> String {
    match result {
        Ok(_) => "taken".to_owned(),
        Err(LockError::Held { holder }) => holder,
        Err(LockError::Io(error)) => format!("{:?}", error.kind()),
    }
}

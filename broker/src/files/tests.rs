//! What the store relies on holds for files on a disk as for recorded ones.

use std::io;
use std::path::Path;

use super::{DataFile, Disk, FileSystem, Listed, LockError, OpenMode, RecordedFiles};

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

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_taken_for_one() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    std::os::unix::fs::symlink(root.join("loop"), root.join("loop")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    std::fs::write(root.join("plain"), "").unwrap();
    assert_eq!(Disk.list(root).unwrap(), [Listed { name: "plain".into(), length: 0 }]);
    let others = Disk.list_others(root).unwrap();
    let others: Vec<_> = others.iter().map(|other| (&*other.name, other.what)).collect();
    assert_eq!(others, [("loop", "a symbolic link"), ("socket", "a pipe, a socket or a device")]);
    for name in ["loop", "socket"] {
        let path = root.join(name);
        for mode in [OpenMode::Existing, OpenMode::ReadOnly, OpenMode::New, OpenMode::Any] {
            assert!(Disk.open(&path, mode).is_err(), "{name} {mode:?}");
        }
        assert!(Disk.lock(&path, "holder").is_err() && Disk.lock_to_read(&path).is_err(), "{name}");
        assert!(Disk.create_directory(&path.join("below")).is_err(), "{name}");
    }
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

    files.create_directory(&data.join("within")).unwrap();
    step(outcome(files.list_others(&data)));
    step(outcome(files.list_others(&data.join("nowhere"))));
    step(outcome(files.open(&data.join("nowhere"), OpenMode::ReadOnly)));
    step(outcome(files.open(&data.join("within"), OpenMode::ReadOnly)));
    let this = files.open(&one, OpenMode::New).unwrap();
    step(outcome(this.write_all_at(b"this", 0)));
    let to_read = files.open(&one, OpenMode::ReadOnly).unwrap();
    step(bytes(&*to_read, 0));
    step(to_read.write_all_at(b"no", 0).is_err().to_string());
    step(to_read.set_len(0).is_err().to_string());
    step(format!("{:?} {:?}", this.is_at(&one).unwrap(), to_read.is_at(&one).unwrap()));
    step(outcome(this.is_at(&other)));
    step(outcome(files.rename(&one, &other)));
    step(format!("{:?} {:?}", this.is_at(&one).unwrap(), to_read.is_at(&other).unwrap()));
    files.open(&one, OpenMode::New).unwrap();
    step(outcome(this.is_at(&one)));
    step(outcome(files.create_directory(&one)));
    step(outcome(files.create_directory(&one.join("below/it"))));
    step(outcome(this.is_at(&one.join("below"))));

    let lock = data.join("lock");
    step(holder(files.lock_to_read(&lock)));
    let held = files.lock(&lock, "the first, which has a long name").unwrap();
    step(holder(files.lock(&lock, "another")));
    step(holder(files.lock_to_read(&lock)));
    step(outcome(held.is_at(&lock)));
    drop(held);
    let held = files.lock_to_read(&lock).unwrap();
    step(holder(files.lock(&lock, "another")));
    files.remove(&lock).unwrap();
    step(outcome(held.is_at(&lock)));
    let next = files.lock(&lock, "the next one").unwrap();
    step(format!("{:?} {:?}", held.is_at(&lock).unwrap(), next.is_at(&lock).unwrap()));
    drop(held);
    step(holder(files.lock(&lock, "another")));
    drop(next);
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

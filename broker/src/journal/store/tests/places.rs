//! Directories in which something else is than a broker has left there: no start panics, waits for it or takes it for its
//! own; it says what is where, and what is to be done.

use std::fs;

use super::*;
use crate::files::Disk;
use crate::journal::inspect;

/// A directory with twenty messages and a checkpoint in the middle of them, and its root.
fn begun() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("data/broker");
    let store = JournalStore::open_stepwise(Arc::new(Disk), at(&root)).unwrap();
    for stored in 1..=20 {
        let outcome = submit(&store, send(stored));
        store.step();
        outcome.try_recv().unwrap().unwrap();
        if stored == 10 {
            store.checkpoint().unwrap();
        }
    }
    drop(store);
    (directory, root)
}

fn at(root: &Path) -> JournalOptions {
    JournalOptions { max_file_length: 4_096, ..JournalOptions::new(root) }
}

/// What a start says, and every look at the directory; none of them may wait for ever.
fn refusals(options: &JournalOptions) -> (Result<Recovered, OpenError>, Vec<String>) {
    let (told, hears) = mpsc::channel();
    let options = options.clone();
    thread::spawn(move || {
        let files: Arc<dyn FileSystem> = Arc::new(Disk);
        let root = &options.directory;
        let looks = [
            inspect::verify(&files, root).map(drop),
            inspect::dump(&files, root, &mut Vec::new()).map(drop),
            inspect::explain(&files, root, &mut Vec::new()),
        ];
        let looks = looks.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
        let opened = JournalStore::open_stepwise(files, options.clone());
        let recovered = opened.map(|store| {
            let recovered = store.recover();
            let outcome = submit(&store, send(99));
            store.step();
            outcome.try_recv().unwrap().unwrap_or_else(|error| panic!("it opened, and then: {error}"));
            recovered
        });
        told.send((recovered, looks)).unwrap();
    });
    hears.recv_timeout(HANG).expect("it neither panics nor waits for ever")
}

fn refusal(options: &JournalOptions) -> String {
    refusals(options).0.map(|recovered| names(&recovered)).unwrap_err().to_string()
}

#[test]
fn a_file_in_the_place_of_a_directory_is_named_and_what_to_do() {
    for (place, culprit) in [
        ("data", "data"),
        ("data/broker", "data/broker"),
        ("data/broker/journal", "data/broker/journal"),
        ("data/broker/kr-store", "data/broker/kr-store"),
        ("data/archive", "data/archive"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(place);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "not a directory").unwrap();
        let root = directory.path().join("data/broker");
        let archive = directory.path().join("data/archive/of/segments");
        let refused = refusal(&JournalOptions { archive: Some(archive), ..at(&root) });
        let expected = format!(
            "{} is a file; a directory is expected there: move",
            directory.path().join(culprit).display()
        );
        assert!(refused.contains(&expected), "{place}: {refused}");
        assert_eq!(fs::read(&file).unwrap(), b"not a directory");
    }
}

#[test]
fn a_directory_in_the_place_of_a_file_is_named_and_what_to_do() {
    for place in ["lock", "attempts", "kr-store/state", "kr-store/state.doubtful", "unfinished-repair"] {
        let (_directory, root) = begun();
        let path = root.join(place);
        drop(fs::remove_file(&path));
        fs::create_dir(&path).unwrap();
        let refused = refusal(&at(&root));
        let expected = format!(
            "{}: it is a directory; a file is expected there: move the directory away",
            path.display()
        );
        assert!(refused.contains(&expected), "{place}: {refused}");
    }
}

#[test]
fn a_directory_that_cannot_be_written_to_is_named_and_what_to_do() {
    let store = Stepwise::new();
    store.ok(send(1));
    let files = store.files.survive(Survival::Process);
    files.make_read_only(DIRECTORY);
    let refused = Stepwise::open(files, options()).map(drop).unwrap_err().to_string();
    assert!(refused.starts_with("data/broker/lock: "), "{refused}");
    assert!(refused.contains("; it is on a file system that cannot be written to: mount it"), "{refused}");
    let denied = OpenError::io(Path::new("data"))(io::ErrorKind::PermissionDenied.into()).to_string();
    assert!(denied.contains("the user of this process has to be able to read and write it"), "{denied}");
}

#[test]
fn what_has_the_name_of_a_file_and_is_none_is_neither_waited_for_nor_passed_over() {
    type Make = fn(&Path);
    let socket: Make = |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap());
    let directory: Make = |path| fs::create_dir(path).unwrap();
    let to_itself: Make = |path| std::os::unix::fs::symlink(path, path).unwrap();
    let elsewhere: Make = |path| {
        let moved = path.parent().unwrap().parent().unwrap().join("moved");
        fs::write(&moved, "").unwrap();
        std::os::unix::fs::symlink(moved, path).unwrap();
    };
    for make in [socket, directory, to_itself, elsewhere] {
        let (_directory, root) = begun();
        let journal = root.join("journal");
        let count = fs::read_dir(&journal).unwrap().filter_map(Result::ok);
        let count = count.filter(|entry| !entry.file_name().to_string_lossy().contains("spare")).count();
        // One that is there, the one to be, a spare to be, and a large message to be.
        let next = format!("{:016x}.journal", count as u64 * 4_096);
        for name in
            ["0000000000001000.journal", &next, "spare-900.journal", "spare-room", "0000000000000063.large"]
        {
            let (_directory, root) = begun();
            let path = root.join("journal").join(name);
            drop(fs::remove_file(&path));
            make(&path);
            let (started, looks) = refusals(&at(&root));
            for refused in looks.into_iter().chain([started.map(drop).unwrap_err().to_string()]) {
                assert!(refused.starts_with(&format!("{}: it is a ", path.display())), "{refused}");
                assert!(refused.contains("move it away"), "{refused}");
            }
        }
        for name in ["lock", "attempts", "kr-store/state"] {
            let (_directory, root) = begun();
            let path = root.join(name);
            fs::remove_file(&path).unwrap();
            make(&path);
            // A link to an empty file is as good as that file.
            if let (Err(error), _) = refusals(&at(&root)) {
                assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
            }
        }
    }
    let directory = tempfile::tempdir().unwrap();
    for root in ["data", "data/broker"] {
        let path = directory.path().join(root);
        to_itself(&path);
        let refused = refusal(&at(&directory.path().join("data/broker")));
        assert!(
            refused.contains(&format!("{} is a symbolic link; a directory is expected", path.display())),
            "{refused}"
        );
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
    }
}

#[test]
fn a_segment_of_a_wrong_length_loses_what_it_lacks_by_name_or_nothing() {
    let all: Vec<u64> = (1..=20).collect();
    let count = {
        let (_directory, root) = begun();
        fs::read_dir(root.join("journal")).unwrap().count()
    };
    for segment in 0..count as u64 {
        for length in [0, 1, 511, 513, 2_048, 4_095, 4_097, 5_000, 8_192, 1 << 30, (1 << 30) + 1, 1 << 40] {
            let (_directory, root) = begun();
            let path = root.join(format!("journal/{:016x}.journal", segment * 4_096));
            let Ok(file) = fs::OpenOptions::new().write(true).open(&path) else { continue };
            file.set_len(length).unwrap();
            let (started, _) = refusals(&at(&root));
            match started {
                Ok(recovered) => assert_eq!(names(&recovered), all, "segment {segment}, {length} bytes"),
                Err(error) => {
                    let error = error.to_string();
                    assert!(
                        error.starts_with(&path.display().to_string()),
                        "segment {segment}, {length} bytes: {error}"
                    );
                    assert!(
                        error.contains("corriere-store repair") || error.contains("move it away"),
                        "{error}"
                    );
                }
            }
        }
    }
}

/// Bytes that are no checkpoint, and such that are one up to a point.
#[test]
fn a_checkpoint_that_is_something_else_is_named_and_nobody_panics_over_it() {
    let (_directory, root) = begun();
    let path = root.join("kr-store/state");
    let whole = fs::read(&path).unwrap();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for round in 0..150 {
        let mut bytes = whole.clone();
        match round {
            0 => bytes.clear(),
            1 => bytes = b"nothing of ours".to_vec(),
            2 => bytes = vec![0; whole.len()],
            3 => bytes = vec![0xff; whole.len()],
            4..10 => bytes = (0..whole.len()).map(|_| random() as u8).collect(),
            10..40 => bytes.truncate(random() as usize % whole.len()),
            // The header as it is, and anything behind it.
            40..60 => bytes[512..].iter_mut().for_each(|byte| *byte = random() as u8),
            // Anything in the header.
            60..100 => {
                bytes[9..320].iter_mut().step_by(1 + round % 7).for_each(|byte| *byte = random() as u8);
            }
            _ => {
                let at = random() as usize % whole.len();
                let end = whole.len().min(at + 1 + random() as usize % 4_096);
                bytes[at..end].iter_mut().for_each(|byte| *byte = random() as u8);
            }
        }
        fs::write(&path, &bytes).unwrap();
        let (started, _) = refusals(&at(&root));
        match started {
            // What was overwritten is needed by nobody.
            Ok(recovered) => {
                assert!(names(&recovered).starts_with(&(1..=20).collect::<Vec<_>>()), "round {round}");
            }
            Err(error) => {
                let error = error.to_string();
                assert!(error.starts_with(&path.display().to_string()), "round {round}: {error}");
                assert!(error.contains("corriere-store repair"), "round {round}: {error}");
            }
        }
    }
}

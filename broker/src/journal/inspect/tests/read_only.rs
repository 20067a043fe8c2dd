//! Directories that cannot be written to: a copy on another medium, somebody else's.

use super::*;

/// All that can be said of a directory.
fn looks(files: &RecordedFiles) -> (String, Vec<Json>, String, Repaired) {
    let verified = verify(&looked_at(files), Path::new(DIRECTORY)).unwrap();
    let mut explained = Vec::new();
    explain(&looked_at(files), Path::new(DIRECTORY), &mut explained).unwrap();
    let repaired = repair(&looked_at(files), Path::new(DIRECTORY), Path::new(INTO)).unwrap();
    (format!("{verified:?}"), dumped(files).1, String::from_utf8(explained).unwrap(), repaired)
}

#[test]
fn a_copy_that_cannot_be_written_to_is_looked_at_and_repaired_as_any_other() {
    let expected = looks(&everything());
    for with_lock in [true, false] {
        let files = everything();
        if !with_lock {
            files.remove_now(file("lock"));
        }
        files.make_read_only(DIRECTORY);
        let before = files.paths();
        assert_eq!(looks(&files), expected);
        let new = files.paths().into_iter().filter(|path| !path.starts_with(INTO)).collect::<Vec<_>>();
        assert_eq!(new, before);
        let refused = open(&files, DIRECTORY).map(drop).unwrap_err().to_string();
        assert!(refused.contains("cannot be written to"), "{refused}");
    }
}

#[test]
fn who_cannot_write_does_not_look_at_what_a_broker_writes_to() {
    let files = RecordedFiles::new();
    let store = open(&files, DIRECTORY).unwrap();
    run(&store, vec![append(1, 10, None)]);
    files.make_read_only(DIRECTORY);
    let refused = verify(&looked_at(&files), Path::new(DIRECTORY)).unwrap_err().to_string();
    assert!(refused.contains("is in use: it is held by process "), "{refused}");
    drop(store);
    assert_eq!(verify(&looked_at(&files), Path::new(DIRECTORY)).unwrap().messages, 1);
}

//! Directories that are as they should be: nothing is found, and nothing is changed.

use super::*;

#[test]
fn a_whole_directory_is_verified_and_not_changed() {
    let files = everything();
    let before = contents(&files);
    let verified = verify(&looked_at(&files), Path::new(DIRECTORY)).unwrap();
    assert_eq!((&*verified.findings, &verified.torn), (&[] as &[Finding], &None));
    assert_eq!(verified.messages, 15 + 2 + 1 + 2, "on queues, prepared, large, committed");
    assert!(verified.records > 35 && verified.segments > 4, "{verified:?}");
    assert_eq!(contents(&files), before);
}

#[test]
fn a_dump_has_each_live_message_with_its_delivery_state() {
    let (dumped, lines) = dumped(&everything());
    assert_eq!((dumped.messages, dumped.unreadable), (20, 0));
    let of = |stored: u64| lines.iter().find(|line| line["stored"] == stored).unwrap();
    let line = of(11);
    assert_eq!(line["queue"], "queue://orders");
    assert_eq!((&line["failed_deliveries"], &line["not_before"]), (&json!(2), &json!(1_000_000)));
    assert_eq!(line["conversion_failed"], true);
    assert_eq!(line["headers"]["message_id"], "ID:p:11");
    assert_eq!(line["properties"], json!({ "table": { "int": 7 } }));
    assert_eq!(line["body"]["text"].as_str().map(str::len), Some(304));
    assert_eq!(of(12)["failed_deliveries"], 3, "it was in the hands of the application");
    assert_eq!(of(32)["transaction"], "XID:7:67:62");
    assert_eq!(of(33)["body"]["text"].as_str().map(str::len), Some(9_004));
    assert!(lines.iter().all(|line| line["stored"] != 36), "its transaction is over with its process");
    let stored = lines.iter().map(|line| line["stored"].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(stored[..5], [10, 15, 30, 35, 11], "queue by queue");
}

#[test]
fn every_segment_is_explained() {
    let files = everything();
    let mut out = Vec::new();
    explain(&looked_at(&files), Path::new(DIRECTORY), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    for path in segments(&files, DIRECTORY) {
        let name = path.file_name().unwrap().to_string_lossy();
        let (_, behind) = text.split_once(&format!("{name}  ")).unwrap_or_else(|| panic!("{name}: {text}"));
        let reason = behind.lines().nth(1).unwrap_or_default();
        assert!(reason.starts_with("  kept: ") || reason.starts_with("  needed no more"), "{name}: {text}");
    }
    for part in [
        "live messages of queue://orders",
        "of prepared transactions",
        "the last one",
        "2 large messages",
        "the first is message 10",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn what_is_whole_is_the_same_after_a_repair() {
    let files = everything();
    let (repaired, recovered) = repaired(&files);
    assert_eq!((&*repaired.lost, &*repaired.notes), (&[] as &[Finding], &[] as &[Finding]));
    assert_eq!(repaired.messages, 20);
    let (expected, messages) = started(&files, DIRECTORY);
    assert_eq!(format!("{recovered:?}"), format!("{expected:?}"));
    assert_eq!(started(&files, INTO).1, messages);
    assert_eq!(expected.prepared.len(), 1);
}

#[test]
fn a_torn_end_is_no_damage() {
    let mut torn = 0;
    for seed in 0..10 {
        let files = RecordedFiles::new();
        let store = open(&files, DIRECTORY).unwrap();
        (1..=20).for_each(|stored| send(&store, stored));
        files.crash_at(files.operations() + 1, seed);
        let batch = (21..=23).map(|stored| append(stored, 300, None)).collect();
        store.submit(batch, Box::new(|_, _| ()));
        store.step();
        let files = kill(store, &files);
        let verified = verify(&looked_at(&files), Path::new(DIRECTORY)).unwrap();
        assert_eq!(verified.findings, [], "seed {seed}");
        torn += u32::from(verified.torn.is_some());
        let (repaired, recovered) = repaired(&files);
        assert_eq!(repaired.lost, [], "seed {seed}");
        assert_eq!(repaired.notes, Vec::from_iter(verified.torn), "seed {seed}");
        assert_eq!(names(&recovered), names(&started(&files, DIRECTORY).0), "seed {seed}");
    }
    assert!(torn > 2, "{torn} were torn");
}

#[test]
fn a_directory_in_use_is_left_alone_and_its_holder_named() {
    let files = RecordedFiles::new();
    let store = open(&files, DIRECTORY).unwrap();
    let error = verify(&looked_at(&files), Path::new(DIRECTORY)).unwrap_err().to_string();
    assert!(error.contains("is in use: it is held by process "), "{error}");
    let error = repair(&looked_at(&files), Path::new(DIRECTORY), Path::new(INTO)).unwrap_err();
    assert!(matches!(error, InspectError::Open(OpenError::Locked { .. })), "{error}");
    drop(store);
}

#[test]
fn what_is_no_directory_of_a_broker_is_refused_and_so_is_a_repair_into_one() {
    let files = everything();
    let no_journal = verify(&looked_at(&files), Path::new("data")).unwrap_err().to_string();
    assert!(no_journal.contains("expected `<data_directory>/<broker name>`"), "{no_journal}");
    assert_eq!(files.paths().iter().filter(|path| path.ends_with("data/lock")).count(), 0);
    let into_itself = repair(&looked_at(&files), Path::new(DIRECTORY), Path::new(DIRECTORY)).unwrap_err();
    assert!(matches!(into_itself, InspectError::NotEmpty { .. }), "{into_itself}");
}

//! Directories that are damaged, or without a segment or the checkpoint: C-45.

use super::*;

/// (a), (b): a bit of the third file flips, behind the checkpoint.
#[test]
fn a_damaged_record_is_refused_named_and_alone_lost() {
    let files = fifty(false);
    let third = &segments(&files, DIRECTORY)[2];
    files.flip(third, 300, 4);
    let before = journal(&files);
    let refused = open(&files, DIRECTORY).map(drop).unwrap_err().to_string();
    assert!(refused.starts_with(&format!("{}, offset ", third.display())), "{refused}");
    assert!(refused.contains("corriere-store repair data/local INTO"), "{refused}");
    assert_eq!(journal(&files), before, "data untouched");

    let verified = verify(&looked_at(&files), Path::new(DIRECTORY)).unwrap();
    let [finding] = &*verified.findings else { panic!("{verified:?}") };
    assert_eq!((&finding.file, finding.offset), (third, Some(0)));
    let dump = dump(&looked_at(&files), Path::new(DIRECTORY), &mut Vec::new());
    assert!(matches!(dump, Err(InspectError::Open(OpenError::Damaged { .. }))), "{dump:?}");

    let (repaired, recovered) = repaired(&files);
    let found = names(&recovered);
    let lost = (1..=50).find(|stored| !found.contains(stored)).unwrap();
    assert_eq!(found, in_order((1..=50).filter(|stored| *stored != lost)));
    let [finding] = &*repaired.lost else { panic!("{repaired:?}") };
    assert!(finding.what.contains(&format!("message {lost}")), "{finding}");
}

/// (a), (b): the same in a message that the checkpoint has. A start does not read it, so it is found by who asks for it.
#[test]
fn a_damaged_message_below_the_checkpoint_is_named_and_alone_lost() {
    let files = fifty(true);
    let third = &segments(&files, DIRECTORY)[2];
    files.flip(third, 300, 4);
    let verified = verify(&looked_at(&files), Path::new(DIRECTORY)).unwrap();
    assert_eq!(verified.messages, 49);
    let (dumped, lines) = dumped(&files);
    assert_eq!((dumped.messages, dumped.unreadable), (50, 1));
    let unreadable = lines.iter().find(|line| line.get("error").is_some()).unwrap();
    let lost = unreadable["stored"].as_u64().unwrap();
    assert!(
        verified
            .findings
            .iter()
            .any(|finding| finding.what.starts_with(&format!("message {lost} of queue://")))
    );

    let (repaired, recovered) = repaired(&files);
    assert_eq!(names(&recovered), in_order((1..=50).filter(|stored| *stored != lost)));
    let [finding] = &*repaired.lost else { panic!("{repaired:?}") };
    assert_eq!(&finding.file, third);
    assert!(finding.what.starts_with(&format!("message {lost} of queue://")), "{finding}");
}

/// Its length was durable before it had records, so this is no torn end.
#[test]
fn a_last_segment_that_was_cut_short_is_named_with_and_without_the_checkpoint() {
    for length in [0, 511, 2_048] {
        let files = fifty(false);
        let last = segments(&files, DIRECTORY).pop().unwrap();
        files.truncate(&last, length);
        let refused = open(&files, DIRECTORY).map(drop).unwrap_err().to_string();
        assert!(
            refused.starts_with(&format!("{}, offset {length}: it has {length} bytes", last.display())),
            "{refused}"
        );
        for _ in 0..2 {
            let verified = verify(&looked_at(&files), Path::new(DIRECTORY)).unwrap();
            let named = verified.findings.iter().filter(|finding| finding.file == last);
            assert_eq!(named.count(), 1, "{verified:?}");
            if files.paths().contains(&file("kr-store/state")) {
                files.remove_now(file("kr-store/state"));
            }
        }
        let (repaired, recovered) = repaired(&files);
        assert!(names(&recovered).len() >= 40);
        assert!(repaired.lost.iter().any(|finding| finding.file == last), "{repaired:?}");
    }
}

#[test]
fn one_flipped_bit_costs_one_message_at_most_and_says_so() {
    for checkpoint in [false, true] {
        let files = fifty(checkpoint);
        let live = segments(&files, DIRECTORY);
        for at in (0..live.len() as u64 * LENGTH).step_by(1_021) {
            let files = files.survive(Survival::Process);
            files.flip(&live[(at / LENGTH) as usize], at % LENGTH, (at % 8) as u8);
            let repaired = repair(&looked_at(&files), Path::new(DIRECTORY), Path::new(INTO)).unwrap();
            let found = names(&started(&files, INTO).0);
            let lost = (1..=50).filter(|stored| !found.contains(stored)).collect::<Vec<_>>();
            assert_eq!(found, in_order((1..=50).filter(|stored| !lost.contains(stored))), "at {at:#x}");
            // What the end of the journal has is cut where nothing says that it was durable.
            let said = repaired.lost.len() + repaired.notes.len();
            assert!(lost.len() <= 1 && (lost.is_empty() || said > 0), "at {at:#x}: {lost:?}, {repaired:?}");
        }
    }
}

/// (c).
#[test]
fn a_missing_segment_is_named_and_the_others_are_saved() {
    for checkpoint in [false, true] {
        let files = fifty(checkpoint);
        let third = segments(&files, DIRECTORY)[2].clone();
        files.remove_now(&third);
        let before = journal(&files);
        let refused = open(&files, DIRECTORY).map(drop).unwrap_err().to_string();
        assert!(refused.starts_with(&format!("{}: it is missing", third.display())), "{refused}");
        assert_eq!(journal(&files), before, "data untouched");
        let verified = verify(&looked_at(&files), Path::new(DIRECTORY)).unwrap();
        assert!(verified.findings.iter().any(|finding| finding.file == third), "{verified:?}");

        let (repaired, recovered) = repaired(&files);
        let found = names(&recovered);
        let lost = (1..=50).filter(|stored| !found.contains(stored)).collect::<Vec<_>>();
        assert_eq!(found, in_order((1..=50).filter(|stored| !lost.contains(stored))));
        assert!((4..=12).contains(&lost.len()), "{lost:?}");
        assert!(repaired.lost.iter().any(|finding| finding.file == third), "{repaired:?}");
    }
}

/// (e): a message pins the first file, the acknowledgements of the others in it are in the second, and so on.
#[test]
fn without_the_checkpoint_the_start_is_refused_and_every_live_message_is_brought_back() {
    let files = RecordedFiles::new();
    let store = open(&files, DIRECTORY).unwrap();
    (1..=8).for_each(|stored| send(&store, stored));
    let mut stored = 8;
    for acknowledged in 2..=40 {
        stored += 1;
        send(&store, stored);
        acknowledge(&store, acknowledged);
        if acknowledged % 10 == 0 {
            store.checkpoint().unwrap();
        }
    }
    (41..=stored).for_each(|stored| acknowledge(&store, stored));
    // A transaction that is live, though the segment of its commit may go.
    run(&store, vec![append(100, 10, Some(local())), StoreOperation::Commit(local())]);
    store.checkpoint().unwrap();
    store.close();
    drop(store);
    let files = files.survive(Survival::Process);
    assert!(segments(&files, DIRECTORY).len() <= 3, "the files in between are gone");
    assert_eq!(names(&started(&files, DIRECTORY).0), [100, 1]);
    let files = files.survive(Survival::Process);

    files.remove_now(file("kr-store/state"));
    let before = journal(&files);
    let refused = open(&files, DIRECTORY).map(drop).unwrap_err().to_string();
    assert!(refused.starts_with("data/local/kr-store/state: the checkpoint"), "{refused}");
    assert!(refused.contains("corriere-store repair data/local INTO"), "{refused}");
    assert_eq!(journal(&files), before, "data untouched");
    let verified = verify(&looked_at(&files), Path::new(DIRECTORY)).unwrap();
    assert_eq!(verified.findings.len(), 1, "{verified:?}");
    assert_eq!(verified.findings[0].file, file("kr-store/state"));

    let (repaired, recovered) = repaired(&files);
    let found = names(&recovered);
    assert!(found.contains(&1) && found.contains(&100), "{found:?}");
    assert_eq!(repaired.lost, []);
    assert!(repaired.notes[0].what.contains("consumed may be there again"), "{repaired:?}");
    assert!(recovered.last_id >= StoredId(100));
}

#[test]
fn a_damaged_checkpoint_is_as_good_as_none() {
    let files = everything();
    let (expected, _) = started(&files, DIRECTORY);
    let files = files.survive(Survival::Process);
    let state = file("kr-store/state");
    files.truncate(&state, 100);
    let verified = verify(&looked_at(&files), Path::new(DIRECTORY)).unwrap();
    assert!(verified.findings[0].what.contains("the checkpoint"), "{verified:?}");
    let (repaired, recovered) = repaired(&files);
    let found = names(&recovered);
    assert!(names(&expected).iter().all(|stored| found.contains(stored)), "{found:?}");
    assert_eq!(recovered.prepared.len() + repaired.lost.len(), 1);
}

#[test]
fn a_transaction_whose_end_is_damaged_is_brought_back_and_named() {
    let files = RecordedFiles::new();
    let store = open(&files, DIRECTORY).unwrap();
    (1..=3).for_each(|stored| send(&store, stored));
    run(&store, vec![append(10, 300, Some(local())), append(11, 300, Some(local()))]);
    let commit = files.contents(file("journal/0000000000000000.journal"));
    run(&store, vec![StoreOperation::Commit(local())]);
    let after = files.contents(file("journal/0000000000000000.journal"));
    let at = commit.iter().zip(&after).position(|(before, after)| before != after).unwrap() as u64;
    (20..=22).for_each(|stored| send(&store, stored));
    let files = kill(store, &files);
    files.flip(file("journal/0000000000000000.journal"), at / 512 * 512 + 80, 0);
    let (repaired, recovered) = repaired(&files);
    assert_eq!(names(&recovered), in_order([1, 2, 3, 20, 21, 22, 10, 11].into_iter()));
    let named = |stored: &str| repaired.notes.iter().any(|note| note.what.contains(stored));
    assert!(named("message 10 of queue://emails") && named("message 11 of queue://orders"), "{repaired:?}");
}

#[test]
fn however_much_is_damaged_a_repair_makes_a_whole_directory() {
    let whole = everything();
    let (mut found_nothing, mut lost_something) = (0, 0);
    for seed in 0..40_u64 {
        let files = whole.survive(Survival::Process);
        let mut number = seed;
        let mut below = |limit: u64| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (number >> 33) % limit
        };
        let damaged = files.paths().into_iter().filter(|path| !path.ends_with("lock"));
        for path in damaged.collect::<Vec<_>>() {
            let length = files.contents(&path).len() as u64;
            match below(8) {
                0 => files.remove_now(&path),
                1 => files.truncate(&path, below(length + 1)),
                2..=5 if length > 0 => {
                    (0..below(40)).for_each(|_| files.flip(&path, below(length), below(8) as u8));
                }
                _ => {}
            }
        }
        let verified = verify(&looked_at(&files), Path::new(DIRECTORY)).unwrap();
        let repaired = repair(&looked_at(&files), Path::new(DIRECTORY), Path::new(INTO)).unwrap();
        let after = verify(&looked_at(&files), Path::new(INTO)).unwrap();
        assert_eq!((after.findings, after.messages), (vec![], repaired.messages), "seed {seed}");
        found_nothing += u32::from(verified.findings.is_empty());
        lost_something += u32::from(!repaired.lost.is_empty());
        started(&files, INTO);
    }
    assert!(found_nothing < 10 && lost_something > 20, "{found_nothing}, {lost_something}");
}

#[test]
fn what_an_interrupted_repair_has_left_is_no_directory_to_start_on_or_to_repair() {
    let whole = everything();
    let before = whole.operations();
    repair(&looked_at(&whole), Path::new(DIRECTORY), Path::new(INTO)).unwrap();
    let all = whole.operations() - before;
    assert!(all > 4, "{all} operations");
    for interrupted_at in 1..=all {
        let files = everything();
        files.crash_at(files.operations() + interrupted_at, interrupted_at);
        repair(&looked_at(&files), Path::new(DIRECTORY), Path::new(INTO)).unwrap_err();
        let files = files.survive(Survival::Process);
        let left = looked_at(&files);
        if left
            .list(Path::new(INTO))
            .is_ok_and(|listed| listed.iter().any(|file| file.name == "unfinished-repair"))
        {
            for refused in [
                open(&files, INTO).unwrap_err().to_string(),
                verify(&left, Path::new(INTO)).unwrap_err().to_string(),
            ] {
                assert!(refused.contains("interrupted repair"), "{refused}");
            }
        } else if let Ok(store) = open(&files, INTO) {
            // Before anything was to be there, or when all was.
            let count: usize = store.recover().queues.iter().map(|queue| queue.messages.len()).sum();
            let is_first = interrupted_at <= 5;
            assert!(count > 0 || is_first, "interrupted at {interrupted_at} of {all}: a start finds nothing");
        }
    }
}

#[test]
fn nothing_is_repaired_into_itself() {
    let files = looked_at(&everything());
    for into in [DIRECTORY, "data", "data/local/repaired"] {
        let error = repair(&files, Path::new(DIRECTORY), Path::new(into)).unwrap_err();
        assert!(error.to_string().contains(into), "{error}");
    }
}

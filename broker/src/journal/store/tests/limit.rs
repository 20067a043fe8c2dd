//! A limit that large messages meet: when there is room again, and what may not be in their way.

use super::*;

/// Segments of 16 KiB, and a limit that leaves room for two files of 8,000 bytes beside one of them.
fn for_two_large() -> Stepwise {
    let limited = JournalOptions { max_file_length: 16 << 10, store_limit: Some(34_000), ..options() };
    Stepwise::open(RecordedFiles::new(), limited).unwrap()
}

fn send_large(stored: u64) -> Vec<StoreOperation> {
    vec![append_of(stored, 8_000, None, Arrival::Sent)]
}

#[test]
fn room_is_told_of_as_soon_as_what_was_refused_has_it_though_no_other_segment_could_be_begun() {
    let store = for_two_large();
    let events = watch(&store.store);
    (1..=2).for_each(|stored| store.ok(send_large(stored)));
    store.run(send_large(3)).unwrap_err();
    assert!(matches!(events.try_recv(), Ok(StoreEvent::Full { .. })));
    store.store.checkpoint().unwrap();
    store.store.housekeep();
    assert!(events.try_recv().is_err(), "nothing is given up yet");
    store.ok(remove(1));
    store.store.checkpoint().unwrap();
    store.store.housekeep();
    assert_eq!(events.try_recv(), Ok(StoreEvent::Room));
    store.store.take_sends();
    store.ok(send_large(3));
    assert_eq!(names(&store.crash(Survival::Process).store.recover()), [2, 3]);
}

#[test]
fn a_segment_that_is_written_to_its_end_is_in_the_way_of_nothing_once_nothing_in_it_is_needed() {
    // Wherever in the segment a large message comes.
    for before in 0..40 {
        let store = for_two_large();
        store.store.housekeep();
        // One comes after the other, and each is taken away: it may have to wait, but not for ever.
        let fits = |operations: &dyn Fn() -> Vec<StoreOperation>| {
            let is_sent = (0..3).any(|_| {
                let is_sent = store.run(operations()).is_ok();
                if !is_sent {
                    store.store.checkpoint().unwrap();
                    store.store.housekeep();
                    store.store.take_sends();
                }
                is_sent
            });
            assert!(is_sent, "behind {before} messages, {} segments", store.segments());
        };
        for stored in 1..=before {
            fits(&|| send(stored));
            store.ok(remove(stored));
        }
        for stored in 101..=120 {
            fits(&|| send_large(stored));
            store.ok(remove(stored));
        }
        fits(&|| send(1_000));
        store.store.checkpoint().unwrap();
        assert!(store.segments() <= 2);
        let limit = JournalOptions { max_file_length: 16 << 10, store_limit: Some(34_000), ..options() };
        let store = Stepwise::open(store.files.survive(Survival::Process), limit).unwrap();
        assert_eq!(names(&store.store.recover()), [1_000]);
    }
}

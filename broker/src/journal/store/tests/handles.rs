//! Too many open files, of the process or of the system: it is waited for as for room, and ends nothing.

use std::sync::atomic::AtomicI64;

use super::*;
use crate::files::{DataFile, Listed, Lock, LockError, OpenMode, Other};

/// Files that can be opened so often, and then no more.
#[derive(Clone, Debug)]
struct Scarce {
    files: RecordedFiles,
    left: Arc<AtomicI64>,
}

impl Scarce {
    fn allow(&self, handles: i64) {
        self.left.store(handles, Ordering::Relaxed);
    }

    fn take(&self) -> io::Result<()> {
        if self.left.fetch_sub(1, Ordering::Relaxed) > 0 {
            return Ok(());
        }
        // EMFILE; the operating system says it in these words.
        Err(io::Error::from_raw_os_error(24))
    }
}

impl FileSystem for Scarce {
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.files.create_directory(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<Listed>> {
        self.take()?;
        self.files.list(directory)
    }

    fn list_others(&self, directory: &Path) -> io::Result<Vec<Other>> {
        self.take()?;
        self.files.list_others(directory)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DataFile>> {
        self.take()?;
        self.files.open(path, mode)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.remove(path)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.take()?;
        self.files.sync_directory(directory)
    }

    fn lock(&self, path: &Path, holder: &str) -> Result<Box<dyn Lock>, LockError> {
        self.take()?;
        self.files.lock(path, holder)
    }

    fn lock_to_read(&self, path: &Path) -> Result<Box<dyn Lock>, LockError> {
        self.take()?;
        self.files.lock_to_read(path)
    }
}

const ENOUGH: i64 = i64::MAX / 2;

fn begin(options: JournalOptions) -> (Scarce, Stepwise) {
    let scarce = Scarce { files: RecordedFiles::new(), left: Arc::new(AtomicI64::new(ENOUGH)) };
    let store = JournalStore::open_stepwise(Arc::new(scarce.clone()), options).unwrap();
    let files = scarce.files.clone();
    (scarce, Stepwise { files, store })
}

/// Whatever it is for that there are no handles, before anything was written or between two segments.
#[test]
fn too_many_open_files_at_any_moment_refuse_by_name_and_lose_nothing() {
    let (mut refused, mut last) = (0, 0);
    for handles in 0.. {
        let (scarce, store) = begin(options());
        let events = watch(&store.store);
        scarce.allow(handles);
        let mut confirmed = Vec::new();
        let mut run = |stored, operations| match store.run(operations) {
            Ok(()) => confirmed.push(stored),
            Err(StoreError::Full { reason }) => {
                refused += 1;
                last = handles;
                assert!(reason.contains("RLIMIT_NOFILE, `ulimit -n`"), "{reason}");
            }
            Err(other) => panic!("{handles} handles: {other}"),
        };
        for stored in 1..=20 {
            run(stored, send(stored));
            if stored % 7 == 0 {
                store.store.housekeep();
                store.store.take_sends();
                run(100 + stored, vec![append_of(100 + stored, 5_000, None, Arrival::Sent)]);
            }
        }
        drop(store.store.checkpoint());
        let told = events.try_iter().collect::<Vec<_>>();
        assert!(told.iter().all(|event| !matches!(event, StoreEvent::Failed(_))), "{handles}: {told:?}");

        scarce.allow(ENOUGH);
        store.store.housekeep();
        assert!(store.store.core.status.full().is_none(), "{handles} handles");
        store.store.take_sends();
        store.ok(send(200));
        confirmed.push(200);
        for stored in &confirmed {
            let bytes = if (101..200).contains(stored) { 5_000 } else { 300 };
            assert_eq!(*store.load(*stored).unwrap(), *message(*stored, bytes));
        }
        let large =
            store.files.paths().into_iter().filter(|path| path.extension().unwrap_or_default() == "large");
        let expected = confirmed.iter().filter(|stored| (101..200).contains(*stored)).count();
        assert_eq!(large.count(), expected, "{handles} handles: what was refused leaves no file");
        assert_eq!(names(&store.crash(Survival::OnlySynced).store.recover()), confirmed, "{handles} handles");
        if handles > last + 10 {
            break;
        }
    }
    assert!(refused > 50 && last > 10, "{refused} refused, the last one with {last} handles");
}

/// What is submitted together begins in one segment and goes on in the next.
#[test]
fn too_many_open_files_leave_nothing_of_what_was_submitted_together() {
    for handles in 0..12 {
        let (scarce, store) = begin(options());
        let events = watch(&store.store);
        store.ok(send(1));
        store.store.housekeep();
        scarce.allow(handles);
        let together = (2..=20).map(|stored| append_of(stored, 600, None, Arrival::Sent)).collect();
        let written = store.run(together).is_ok();
        let failed = events.try_iter().any(|event| matches!(event, StoreEvent::Failed(_)));
        scarce.allow(ENOUGH);
        let found = names(&store.crash(Survival::Process).store.recover());
        let expected = if written { (1..=20).collect() } else { vec![1] };
        assert_eq!(found, expected, "{handles} handles, failed: {failed}");
    }
}

#[test]
fn what_is_open_for_later_is_closed_for_what_is_needed_now() {
    let (scarce, store) = begin(options());
    for stored in 1..=40 {
        store.ok(send(stored));
    }
    // It has a file of its own, which does not stay open.
    store.ok(vec![append_of(50, 5_000, None, Arrival::Sent)]);
    let segments = &store.store.core.segments;
    assert!(segments.open_files() > 1);
    scarce.allow(0);
    let refused = store.load(50).unwrap_err();
    assert!(matches!(refused, StoreError::Full { .. }), "{refused}");
    assert_eq!(segments.open_files(), 0, "all of them were closed");
    scarce.allow(ENOUGH);
    assert_eq!(*store.load(50).unwrap(), *message(50, 5_000));
}

#[test]
fn a_message_is_read_back_when_there_are_handles_again() {
    let scarce = Scarce { files: RecordedFiles::new(), left: Arc::new(AtomicI64::new(ENOUGH)) };
    let store = JournalStore::open(Arc::new(scarce.clone()), options()).unwrap();
    let sent = submit(&store, vec![append_of(50, 5_000, None, Arrival::Sent)]);
    sent.recv_timeout(HANG).unwrap().unwrap();
    scarce.allow(0);
    let (sender, receiver) = mpsc::channel();
    store.load(vec![StoredId(50)], Box::new(move |loaded| drop(sender.send(loaded))));
    let since = Instant::now();
    while scarce.left.load(Ordering::Relaxed) > -8 {
        assert!(since.elapsed() < HANG, "it is not tried again");
        thread::sleep(Duration::from_millis(5));
    }
    assert!(receiver.try_recv().is_err());
    scarce.allow(ENOUGH);
    let (_, loaded) = receiver.recv_timeout(HANG).unwrap().remove(0);
    assert_eq!(*loaded.unwrap(), *message(50, 5_000));

    // An end does not wait for handles.
    scarce.allow(0);
    let (sender, receiver) = mpsc::channel();
    store.load(vec![StoredId(50)], Box::new(move |loaded| drop(sender.send(loaded))));
    store.close();
    assert!(receiver.recv_timeout(HANG).unwrap().remove(0).1.is_err());
}

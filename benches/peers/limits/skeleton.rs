//! Group commit: the skeleton of a journal, nothing else.
//!
//! A sender checksums its record, adds it to the pending batch and waits until it is durable. All records that wait when
//! a sync ends are the next batch: one write, one fdatasync, no linger. On disk: a header (magic, length, sequence,
//! CRC-32C) and the payload, padded to 8; a batch is padded with zeros to 4 KiB and does not cross segments. Segments are
//! written full of zeros once and then overwritten in a ring, so a sync has no metadata to write; the sequence tells old
//! from new.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crc32c::{crc32c, crc32c_append};

use super::raw::preallocated;

const MAGIC: [u8; 4] = 0x314A_5247_u32.to_le_bytes();
const HEADER: usize = 24;
const ALIGNMENT: usize = 4096;
const SEGMENT: usize = 32 << 20;
const SEGMENTS: usize = 4;

/// Who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// A thread of its own.
    Thread,
    /// The first of the senders that wait.
    Leader,
}

/// What came of a measurement.
#[derive(Debug)]
pub(crate) struct Measured {
    /// How long each append took, in nanoseconds.
    pub(crate) times: Vec<u64>,
    pub(crate) elapsed: Duration,
    pub(crate) batches: u64,
}

/// Appends records of 1 KiB from so many senders, each of which waits until its own is durable.
pub(crate) fn group_commit(
    directory: &Path,
    senders: usize,
    variant: Variant,
    time: Duration,
) -> io::Result<Measured> {
    let segment = |number| preallocated(&directory.join(format!("skeleton-{number}")), SEGMENT as u64);
    let files = (0..SEGMENTS).map(segment).collect::<io::Result<Vec<_>>>()?;
    File::open(directory)?.sync_all()?;
    let journal = Arc::new(Journal::new(files));
    let writer = (variant == Variant::Thread).then(|| start_writer(&journal));

    let gate = Arc::new(Barrier::new(senders));
    let begin = Instant::now();
    let threads: Vec<_> = (0..senders)
        .map(|number| {
            let (journal, gate) = (Arc::clone(&journal), Arc::clone(&gate));
            thread::spawn(move || {
                gate.wait();
                send(&journal, number, time)
            })
        })
        .collect();
    let mut times = Vec::new();
    for thread in threads {
        times.extend(thread.join().map_err(|_| io::Error::other("a sender of the skeleton panicked"))?);
    }
    let elapsed = begin.elapsed();
    if let Some(writer) = writer {
        journal.stop.store(true, Ordering::Release);
        writer.thread().unpark();
        writer.join().map_err(|_| io::Error::other("the skeleton's writer panicked"))?;
    }
    let ring = lock(&journal.ring);
    verify(&ring, times.len() as u64)?;
    Ok(Measured { times, elapsed, batches: ring.batches })
}

fn start_writer(journal: &Arc<Journal>) -> thread::JoinHandle<()> {
    let serving = Arc::clone(journal);
    let writer = thread::spawn(move || {
        thread::park();
        serving.serve();
    });
    // Nobody else sets it.
    let _ = journal.writer.set(writer.thread().clone());
    writer
}

fn send(journal: &Journal, number: usize, time: Duration) -> Vec<u64> {
    let slot = Arc::new(Slot { state: AtomicU32::new(WAITING), thread: thread::current() });
    let payload: Vec<u8> = (0..1024).map(|index| (index * 31 + number) as u8).collect();
    let mut times = Vec::with_capacity(1 << 16);
    let begin = Instant::now();
    while begin.elapsed() < time {
        let sent = Instant::now();
        journal.append(&slot, &payload);
        times.push(sent.elapsed().as_nanos() as u64);
    }
    times
}

/// Where one sender waits.
#[derive(Debug)]
struct Slot {
    state: AtomicU32,
    thread: Thread,
}

const WAITING: u32 = 0;
const DURABLE: u32 = 1;
const LEADS: u32 = 2;

impl Slot {
    fn wait(&self) -> u32 {
        loop {
            let state = self.state.swap(WAITING, Ordering::AcqRel);
            if state != WAITING {
                return state;
            }
            thread::park();
        }
    }

    fn wake(&self, state: u32) {
        self.state.store(state, Ordering::Release);
        self.thread.unpark();
    }
}

#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    waiting: Vec<Arc<Slot>>,
    is_busy: bool,
}

#[derive(Debug)]
struct Ring {
    files: Vec<File>,
    segment: usize,
    position: usize,
    bytes: Vec<u8>,
    sequence: u64,
    batches: u64,
}

#[derive(Debug)]
struct Journal {
    pending: Mutex<Pending>,
    ring: Mutex<Ring>,
    stop: AtomicBool,
    writer: OnceLock<Thread>,
}

impl Journal {
    fn new(files: Vec<File>) -> Self {
        let ring = Ring { files, segment: 0, position: 0, bytes: Vec::new(), sequence: 0, batches: 0 };
        Self {
            pending: Mutex::default(),
            ring: Mutex::new(ring),
            stop: AtomicBool::new(false),
            writer: OnceLock::new(),
        }
    }

    /// Returns when the record is durable.
    fn append(&self, own: &Arc<Slot>, payload: &[u8]) {
        let checksum = crc32c(payload);
        let is_first = {
            let mut pending = lock(&self.pending);
            let bytes = &mut pending.bytes;
            bytes.extend_from_slice(&MAGIC);
            bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&[0; 8]); // The sequence is filled in by who writes.
            bytes.extend_from_slice(&checksum.to_le_bytes());
            bytes.extend_from_slice(&[0; 4]);
            bytes.extend_from_slice(payload);
            let end = bytes.len().next_multiple_of(8);
            bytes.resize(end, 0);
            pending.waiting.push(Arc::clone(own));
            !std::mem::replace(&mut pending.is_busy, true)
        };
        if let Some(writer) = self.writer.get() {
            if is_first {
                writer.unpark();
            }
            own.wait();
        } else if is_first || own.wait() == LEADS {
            self.lead(own);
        }
    }

    fn lead(&self, own: &Arc<Slot>) {
        let done = self.commit();
        // The next leader first, then who waited for this batch: they wake while the next sync runs (measured: more per
        // second than the other way round, in smaller batches).
        let mut pending = lock(&self.pending);
        let next = pending.waiting.first().cloned();
        pending.is_busy = next.is_some();
        drop(pending);
        if let Some(next) = next {
            next.wake(LEADS);
        }
        for slot in done.iter().filter(|slot| !Arc::ptr_eq(slot, own)) {
            slot.wake(DURABLE);
        }
    }

    /// What the writing thread does.
    fn serve(&self) {
        loop {
            let mut pending = lock(&self.pending);
            if pending.waiting.is_empty() {
                if self.stop.load(Ordering::Acquire) {
                    return;
                }
                pending.is_busy = false;
                drop(pending);
                thread::park();
                continue;
            }
            drop(pending);
            for slot in self.commit() {
                slot.wake(DURABLE);
            }
        }
    }

    /// Writes and syncs all that is pending; returns who waits for it.
    fn commit(&self) -> Vec<Arc<Slot>> {
        let mut ring = lock(&self.ring);
        ring.bytes.clear();
        let done = {
            let mut pending = lock(&self.pending);
            std::mem::swap(&mut pending.bytes, &mut ring.bytes);
            let capacity = pending.waiting.len();
            std::mem::replace(&mut pending.waiting, Vec::with_capacity(capacity))
        };
        // A disk that fails ends the measurement.
        ring.write_and_sync().expect("the skeleton's journal cannot be written");
        done
    }
}

impl Ring {
    fn write_and_sync(&mut self) -> io::Result<()> {
        let mut at = 0;
        while at < self.bytes.len() {
            self.sequence += 1;
            let record = &mut self.bytes[at..];
            record[8..16].copy_from_slice(&self.sequence.to_le_bytes());
            let checksum = crc32c_append(word(record, 16), &record[..16]);
            record[16..20].copy_from_slice(&checksum.to_le_bytes());
            at += (HEADER + word(record, 4) as usize).next_multiple_of(8);
        }
        self.bytes.resize(at.next_multiple_of(ALIGNMENT), 0);
        if self.position + self.bytes.len() > SEGMENT {
            self.segment = (self.segment + 1) % SEGMENTS;
            self.position = 0;
        }
        let file = &self.files[self.segment];
        file.write_all_at(&self.bytes, self.position as u64)?;
        file.sync_data()?;
        self.position += self.bytes.len();
        self.batches += 1;
        Ok(())
    }
}

/// Reads the current segment back: every record up to the last one must be there, in order.
fn verify(ring: &Ring, written: u64) -> io::Result<()> {
    let wrong =
        |what: &str, at: usize| Err(io::Error::other(format!("the skeleton's journal: {what} at {at}")));
    let mut bytes = vec![0; ring.position];
    ring.files[ring.segment].read_exact_at(&mut bytes, 0)?;
    let (mut at, mut last) = (0, 0);
    while at + HEADER <= bytes.len() {
        let record = &bytes[at..];
        if record[..4] != MAGIC {
            if at % ALIGNMENT == 0 {
                return wrong("no record", at);
            }
            at = at.next_multiple_of(ALIGNMENT);
            continue;
        }
        let length = word(record, 4) as usize;
        let sequence = u64::from(word(record, 8)) | u64::from(word(record, 12)) << 32;
        if word(record, 16) != crc32c_append(crc32c(&record[HEADER..HEADER + length]), &record[..16]) {
            return wrong("a checksum that does not fit", at);
        }
        if last != 0 && sequence != last + 1 {
            return wrong("a record out of order", at);
        }
        last = sequence;
        at += (HEADER + length).next_multiple_of(8);
    }
    if last == written { Ok(()) } else { wrong("the last record is missing", at) }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

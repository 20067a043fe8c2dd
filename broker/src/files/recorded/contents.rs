//! The bytes of one file, and what a power cut may make of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::seeded::Seeded;

/// Bytes that a disk writes as a whole or not at all.
pub(super) const SECTOR: usize = 512;

/// Versions of one sector, or of the length, that are kept between two syncs: the durable one and the latest others.
const VERSIONS: usize = 16;

const ZEROS: [u8; SECTOR] = [0; SECTOR];

/// A sector's bytes; `None` is all zeros, so that a segment filled ahead costs nothing.
type Sector = Option<Arc<[u8; SECTOR]>>;

/// A file's bytes as the process sees them, and what they were since they were last durable.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    length: u64,
    sectors: BTreeMap<u64, Arc<[u8; SECTOR]>>,
    /// Of each sector written since the last sync what it was before, the durable one first.
    unsynced: BTreeMap<u64, Vec<Sector>>,
    /// What the length was before, the durable one first.
    lengths: Vec<u64>,
    /// Sectors whose sync failed. The system holds them for clean, so that only writing them anew makes them durable.
    doubtful: BTreeMap<u64, Vec<Sector>>,
}

impl Contents {
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Fills `buffer`; whether there are so many bytes.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> bool {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.length) {
            return false;
        }
        buffer.fill(0);
        for piece in pieces(buffer.len(), offset) {
            if let Some(sector) = self.sectors.get(&piece.sector) {
                buffer[piece.of_bytes()].copy_from_slice(&sector[piece.of_sector()]);
            }
        }
        true
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        self.write_some(bytes, offset, |_| true);
    }

    /// Writes those sectors of `bytes` of which `keep` says so by their number among them.
    pub(super) fn write_some(&mut self, bytes: &[u8], offset: u64, mut keep: impl FnMut(usize) -> bool) {
        for (number, piece) in pieces(bytes.len(), offset).enumerate() {
            if keep(number) {
                let mut sector = self.sectors.get(&piece.sector).map_or(ZEROS, |sector| **sector);
                sector[piece.of_sector()].copy_from_slice(&bytes[piece.of_bytes()]);
                self.put(piece.sector, &sector);
                let end = offset + piece.of_bytes().end as u64;
                self.note_length(self.length.max(end));
            }
        }
    }

    pub(super) fn set_length(&mut self, length: u64) {
        if length < self.length {
            let (last, within) = (length / SECTOR as u64, (length % SECTOR as u64) as usize);
            let beyond: Vec<u64> = self.sectors.range(last..).map(|(sector, _)| *sector).collect();
            for sector in beyond {
                let kept = if sector == last { within } else { 0 };
                let mut bytes = self.sectors.get(&sector).map_or(ZEROS, |sector| **sector);
                bytes[kept..].fill(0);
                self.put(sector, &bytes);
            }
        }
        self.note_length(length);
    }

    pub(super) fn sync(&mut self) {
        for sector in self.unsynced.keys() {
            self.doubtful.remove(sector);
        }
        self.unsynced.clear();
        self.lengths.clear();
    }

    /// A sync that failed: what it was to make durable is not made so by a later one.
    pub(super) fn fail_sync(&mut self) {
        for (sector, versions) in std::mem::take(&mut self.unsynced) {
            let doubtful = self.doubtful.entry(sector).or_default();
            for version in versions {
                push_bounded(doubtful, version);
            }
        }
    }

    /// What a power cut leaves, all of it durable: of each unsynced sector the version that the seed decides, or
    /// the durable one.
    pub(super) fn survivor(&self, seeded: Option<&mut Seeded>) -> Self {
        let mut survivor = Self { length: self.length, sectors: self.sectors.clone(), ..Self::default() };
        // With sectors that survive each by itself alone, a batch of many would never be found whole.
        match seeded.map(|seeded| (seeded.below(4), seeded)) {
            None | Some((0, _)) => survivor.revert(self, |_| 0),
            Some((1, _)) => {}
            Some((_, seeded)) => survivor.revert(self, |versions| seeded.below(versions)),
        }
        survivor
    }

    /// Changes a bit of what is there, as if it had always been so.
    pub(super) fn flip(&mut self, offset: u64, bit: u8) {
        let (sector, within) = (offset / SECTOR as u64, (offset % SECTOR as u64) as usize);
        let mut bytes = self.sectors.get(&sector).map_or(ZEROS, |sector| **sector);
        bytes[within] ^= 1 << (bit % 8);
        self.put(sector, &bytes);
        self.unsynced.remove(&sector);
        self.doubtful.remove(&sector);
    }

    /// Cuts what is there, as if it had always been so.
    pub(super) fn truncate(&mut self, length: u64) {
        self.set_length(length);
        let whole = length / SECTOR as u64;
        self.unsynced.retain(|sector, _| *sector < whole);
        self.doubtful.retain(|sector, _| *sector < whole);
        self.lengths.clear();
    }

    #[cfg(test)]
    pub(super) fn sectors_in_memory(&self) -> usize {
        self.sectors.len()
    }

    /// `choose` is given how many versions there are, the latest being the last of them, and says which one it is.
    fn revert(&mut self, of: &Self, mut choose: impl FnMut(usize) -> usize) {
        let mut versions: BTreeMap<u64, Vec<&Sector>> = BTreeMap::new();
        for (sector, before) in of.doubtful.iter().chain(&of.unsynced) {
            versions.entry(*sector).or_default().extend(before);
        }
        for (sector, before) in versions {
            let chosen = choose(before.len() + 1);
            match before.get(chosen) {
                Some(Some(bytes)) => drop(self.sectors.insert(sector, Arc::clone(bytes))),
                Some(None) => drop(self.sectors.remove(&sector)),
                None => {}
            }
        }
        let length = of.lengths.get(choose(of.lengths.len() + 1)).copied().unwrap_or(of.length);
        // As from an endless file, since an older version of a sector may reach beyond the length.
        self.length = u64::MAX;
        self.set_length(length);
        self.unsynced.clear();
        self.lengths.clear();
    }

    fn put(&mut self, sector: u64, bytes: &[u8; SECTOR]) {
        let before = self.sectors.get(&sector);
        // Of what is durable, or will be by the next sync, the same bytes change nothing.
        let is_same = before.map_or(&ZEROS, |before| &**before) == bytes;
        if is_same && !self.doubtful.contains_key(&sector) {
            return;
        }
        push_bounded(self.unsynced.entry(sector).or_default(), before.cloned());
        if *bytes == ZEROS {
            self.sectors.remove(&sector);
        } else {
            self.sectors.insert(sector, Arc::new(*bytes));
        }
    }

    fn note_length(&mut self, length: u64) {
        if length != self.length {
            push_bounded(&mut self.lengths, self.length);
            self.length = length;
        }
    }
}

/// The first one is the durable one and stays.
fn push_bounded<T>(versions: &mut Vec<T>, version: T) {
    if versions.len() >= VERSIONS {
        versions.remove(1);
    }
    versions.push(version);
}

/// A part of a run of bytes that lies within one sector.
#[derive(Debug)]
struct Piece {
    sector: u64,
    within: usize,
    start: usize,
    length: usize,
}

impl Piece {
    fn of_sector(&self) -> std::ops::Range<usize> {
        self.within..self.within + self.length
    }

    fn of_bytes(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.length
    }
}

fn pieces(length: usize, offset: u64) -> impl Iterator<Item = Piece> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let at = offset + start as u64;
        let within = (at % SECTOR as u64) as usize;
        let piece = Piece {
            sector: at / SECTOR as u64,
            within,
            start,
            length: (length - start).min(SECTOR - within),
        };
        start += piece.length;
        (piece.length > 0).then_some(piece)
    })
}

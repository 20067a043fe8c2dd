//! The unit of writing: a header, and records.

use super::lsn::Lsn;

/// Batches begin at multiples of it, and a write tears at multiples of it.
pub(super) const SECTOR: u64 = 512;

/// Bytes in front of the records.
pub(super) const HEADER: usize = 64;

const MAGIC: [u8; 4] = *b"CRJB";
const VERSION: u8 = 1;
const CONTINUES: u8 = 1;
const CHECKSUM_AT: usize = 56;
const BEHIND_CHECKSUM: usize = 60;

/// What a batch says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) epoch: u64,
    pub(super) lsn: Lsn,
    /// The end of the batch before it.
    pub(super) previous: Lsn,
    /// Up to which all was durable when it was written.
    pub(super) durable: Lsn,
    /// Bytes of header and records.
    pub(super) length: u32,
    /// How many records it has.
    pub(super) count: u32,
    /// Whether what was submitted together goes on in the next batch.
    pub(super) continues: bool,
}

/// What stands at a place where a batch may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A batch whose place and checksum fit, with all of its bytes.
    Batch(Batch),
    /// The same, of another version.
    NewerFormat(u8),
    /// The beginning of one that was to stand here, damaged or written in part.
    Torn { epoch: u64, length: u32 },
    /// None that was to stand here.
    Nothing,
}

impl Batch {
    /// Where the next one may begin.
    pub(super) fn end(&self) -> Lsn {
        Lsn(self.lsn.0 + u64::from(self.length).next_multiple_of(SECTOR))
    }

    /// Up to which all was durable when it was written; no later than itself, whatever it says.
    pub(super) fn known_durable(&self) -> Lsn {
        self.durable.min(self.lsn)
    }

    /// Fills in the header of `bytes`, which has room for it and then the records, and fills up the last sector.
    pub(super) fn seal(&self, bytes: &mut Vec<u8>) {
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&MAGIC);
        header[4] = VERSION;
        header[5] = if self.continues { CONTINUES } else { 0 };
        header[8..16].copy_from_slice(&self.epoch.to_le_bytes());
        header[24..32].copy_from_slice(&self.lsn.0.to_le_bytes());
        header[32..40].copy_from_slice(&self.previous.0.to_le_bytes());
        header[40..48].copy_from_slice(&self.durable.0.to_le_bytes());
        header[48..52].copy_from_slice(&self.length.to_le_bytes());
        header[52..56].copy_from_slice(&self.count.to_le_bytes());
        bytes[..HEADER].copy_from_slice(&header);
        let checksum = checksum(bytes);
        bytes[CHECKSUM_AT..BEHIND_CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
        bytes.resize(bytes.len().next_multiple_of(SECTOR as usize), 0);
    }
}

/// The length that a header says, if it is that of a batch for this place.
pub(super) fn length_at(header: &[u8; HEADER], lsn: Lsn) -> Option<u32> {
    let fits = header[..4] == MAGIC && number(header, 24) == lsn.0;
    Some(half(header, 48)).filter(|length| fits && *length as usize >= HEADER)
}

/// Whether a batch seems to begin there.
pub(super) fn begins(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// What stands at this place. `bytes` are those that [`length_at`] says, or those that there are.
pub(super) fn find(bytes: &[u8], lsn: Lsn) -> Found {
    let Some(header) = bytes.first_chunk::<HEADER>() else { return Found::Nothing };
    let Some(length) = length_at(header, lsn) else { return Found::Nothing };
    let epoch = number(header, 8);
    let whole = bytes.get(..length as usize).filter(|whole| checksum(whole) == half(header, CHECKSUM_AT));
    if whole.is_none() {
        return Found::Torn { epoch, length };
    }
    if header[4] != VERSION {
        return Found::NewerFormat(header[4]);
    }
    Found::Batch(Batch {
        epoch,
        lsn,
        previous: Lsn(number(header, 32)),
        durable: Lsn(number(header, 40)),
        length,
        count: half(header, 52),
        continues: header[5] & CONTINUES != 0,
    })
}

/// Of all but the checksum. `bytes` are at least a header.
fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..CHECKSUM_AT]), &bytes[BEHIND_CHECKSUM..])
}

fn number(header: &[u8; HEADER], at: usize) -> u64 {
    header[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn half(header: &[u8; HEADER], at: usize) -> u32 {
    header[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

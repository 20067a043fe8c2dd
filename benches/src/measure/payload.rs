//! The messages: 1 KiB of bytes that tell who sent them, as which of its messages, and when.

use std::sync::OnceLock;
use std::time::Instant;

use corriere::core::Message;

/// Bytes of a payload.
pub(super) const LENGTH: usize = 1024;
const HEADER: usize = 20;

/// What a payload begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) producer: u32,
    /// Of the producer's messages, from 0.
    pub(super) sequence: u64,
    /// When it was sent; see [`nanoseconds`].
    pub(super) sent: u64,
}

/// Nanoseconds from the first call in this process to that moment; zero for an earlier one.
pub(super) fn nanoseconds(moment: Instant) -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    moment.saturating_duration_since(*ORIGIN.get_or_init(Instant::now)).as_nanos() as u64
}

/// What a producer's payloads have behind their header.
#[derive(Clone, Debug)]
pub(super) struct Filling(Vec<u8>);

impl Filling {
    pub(super) fn of(producer: u32) -> Self {
        Self((HEADER..LENGTH).map(|index| (index * 31) as u8 ^ producer as u8).collect())
    }

    pub(super) fn message(&self, header: Header) -> Message {
        let mut bytes = Vec::with_capacity(LENGTH);
        bytes.extend_from_slice(&header.producer.to_le_bytes());
        bytes.extend_from_slice(&header.sequence.to_le_bytes());
        bytes.extend_from_slice(&header.sent.to_le_bytes());
        bytes.extend_from_slice(&self.0);
        Message::bytes(bytes)
    }

    /// Whether this is behind a header.
    pub(super) fn is_in(&self, payload: &[u8]) -> bool {
        payload.get(HEADER..) == Some(&self.0)
    }
}

/// Reads the header; `None` when the message has no payload of ours.
pub(super) fn header(message: &Message) -> Option<(Header, &[u8])> {
    let payload: &[u8] = message.as_bytes().ok()?.as_bytes();
    let (producer, rest) = payload.split_first_chunk()?;
    let (sequence, rest) = rest.split_first_chunk()?;
    let (sent, _) = rest.split_first_chunk()?;
    let header = Header {
        producer: u32::from_le_bytes(*producer),
        sequence: u64::from_le_bytes(*sequence),
        sent: u64::from_le_bytes(*sent),
    };
    Some((header, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_read_back_and_one_of_another_producer_is_noticed() {
        let wanted = Header { producer: 3, sequence: 1 << 40, sent: 77 };
        let message = Filling::of(3).message(wanted);
        let (header, payload) = header(&message).unwrap();
        assert_eq!((header, payload.len()), (wanted, LENGTH));
        assert!(Filling::of(3).is_in(payload));
        assert!(!Filling::of(4).is_in(payload));
        assert!(!Filling::of(3).is_in(&payload[..LENGTH - 1]));
    }
}

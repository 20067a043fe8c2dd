//! Compressed bodies (OpenWire, section 7). What a stranger has compressed may be a thousand times as long as it looks.

use std::io::Read;

use bytes::Bytes;
use flate2::read::ZlibDecoder;

use super::ConversionError;

/// The bytes of a zlib stream, which may be `maximum` at most. What stands behind the stream is passed over, as in Java.
pub(super) fn inflate(compressed: &[u8], maximum: usize) -> Result<Bytes, ConversionError> {
    // One more is read, to know whether there is more.
    let bound = u64::try_from(maximum).unwrap_or(u64::MAX).saturating_add(1);
    let mut inflated = Vec::new();
    let read = ZlibDecoder::new(compressed).take(bound).read_to_end(&mut inflated);
    read.map_err(|_| ConversionError::Compressed)?;
    if inflated.len() > maximum {
        return Err(ConversionError::TooLarge { maximum });
    }
    Ok(inflated.into())
}

/// The bytes of a zlib stream that stands behind its length, as that of a bytes message does.
pub(super) fn inflate_with_length(compressed: &[u8], maximum: usize) -> Result<Bytes, ConversionError> {
    let Some((length, compressed)) = compressed.split_first_chunk() else {
        return Err(ConversionError::Compressed);
    };
    let announced = i32::from_be_bytes(*length);
    let inflated = inflate(compressed, maximum)?;
    if usize::try_from(announced) != Ok(inflated.len()) {
        return Err(ConversionError::CompressedLength { announced, found: inflated.len() });
    }
    Ok(inflated)
}

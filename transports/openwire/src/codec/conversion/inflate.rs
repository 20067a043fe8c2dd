//! Compressed bodies (OpenWire, section 7). What a stranger has compressed may be a thousand times as long as it looks.

use std::io::Read;

use bytes::Bytes;
use flate2::read::ZlibDecoder;

use super::ConversionError;

/// The bytes of a zlib stream, which may be `maximum` at most. What stands behind the stream is passed over, as Java
/// does.
pub(super) fn inflate(compressed: &[u8], maximum: usize) -> Result<Bytes, ConversionError> {
    // One more is read, to know whether there is more.
    let inflated = first(compressed, maximum.saturating_add(1))?;
    if inflated.len() > maximum {
        return Err(ConversionError::TooLarge { maximum });
    }
    Ok(inflated.into())
}

/// The bytes of a zlib stream that stands behind its length, as that of a bytes message does.
///
/// The length decides: Java compresses the whole of a buffer, of which the body is the beginning.
pub(super) fn inflate_with_length(compressed: &[u8], maximum: usize) -> Result<Bytes, ConversionError> {
    let Some((length, compressed)) = compressed.split_first_chunk() else {
        return Err(ConversionError::Compressed);
    };
    let announced = i32::from_be_bytes(*length);
    let Ok(length) = usize::try_from(announced) else {
        return Err(ConversionError::CompressedLength { announced, found: 0 });
    };
    if length > maximum {
        return Err(ConversionError::TooLarge { maximum });
    }
    let inflated = first(compressed, length)?;
    if inflated.len() < length {
        return Err(ConversionError::CompressedLength { announced, found: inflated.len() });
    }
    Ok(inflated.into())
}

/// The first bytes of a zlib stream. Memory is taken as they come, not as they are announced.
fn first(compressed: &[u8], length: usize) -> Result<Vec<u8>, ConversionError> {
    let mut inflated = Vec::new();
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    let read = ZlibDecoder::new(compressed).take(length).read_to_end(&mut inflated);
    read.map_err(|_| ConversionError::Compressed)?;
    Ok(inflated)
}

//! Java's modified UTF-8: the encoding of `writeUTF`, and of every text in OpenWire.
//!
//! It differs from UTF-8 in two places: U+0000 takes two bytes, and a character beyond U+FFFF is written as its two
//! UTF-16 surrogates, three bytes each.

use super::MessageError;

/// How many bytes `text` takes.
#[must_use]
pub fn encoded_len(text: &str) -> usize {
    text.len()
        + text.bytes().map(|byte| usize::from(byte == 0) + 2 * usize::from(byte >= 0xf0)).sum::<usize>()
}

/// Appends `text`.
pub fn encode(text: &str, target: &mut Vec<u8>) {
    if encoded_len(text) == text.len() {
        target.extend_from_slice(text.as_bytes());
        return;
    }
    for character in text.chars() {
        if character == '\0' {
            target.extend_from_slice(&[0xc0, 0x80]);
        } else if character.len_utf8() < 4 {
            target.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let [high, low] = unit.to_be_bytes();
                let middle = (high & 0x0f) << 2 | low >> 6;
                target.extend_from_slice(&[0xe0 | high >> 4, 0x80 | middle, 0x80 | low & 0x3f]);
            }
        }
    }
}

/// Reads text. A zero byte is taken as U+0000, as Java takes it.
///
/// # Errors
/// [`MessageError::Encoding`] with the first byte that does not fit; a surrogate without its other half is no text.
pub fn decode(bytes: &[u8]) -> Result<String, MessageError> {
    // Most text is the same in both encodings, and what UTF-8 writes in four bytes is no modified UTF-8.
    if let Ok(text) = str::from_utf8(bytes)
        && !bytes.iter().any(|byte| *byte >= 0xf0)
    {
        return Ok(text.to_owned());
    }
    let mut text = String::with_capacity(bytes.len());
    let mut offset = 0;
    while let Some(rest) = bytes.get(offset..).filter(|rest| !rest.is_empty()) {
        let (character, length) = next_character(rest).ok_or(MessageError::Encoding { offset })?;
        text.push(character);
        offset += length;
    }
    Ok(text)
}

fn next_character(bytes: &[u8]) -> Option<(char, usize)> {
    let (unit, length) = next_unit(bytes)?;
    if let Some(character) = char::from_u32(unit.into()) {
        return Some((character, length));
    }
    let (low, low_length) = next_unit(bytes.get(length..)?)?;
    let character = char::decode_utf16([unit, low]).next()?.ok()?;
    Some((character, length + low_length))
}

fn next_unit(bytes: &[u8]) -> Option<(u16, usize)> {
    match *bytes {
        [first @ 0..=0x7f, ..] => Some((first.into(), 1)),
        [first @ 0xc0..=0xdf, second @ 0x80..=0xbf, ..] => {
            let unit = u16::from(first & 0x1f) << 6 | u16::from(second & 0x3f);
            // Only U+0000 is written longer than it needs to be.
            (unit == 0 || unit >= 0x80).then_some((unit, 2))
        }
        [first @ 0xe0..=0xef, second @ 0x80..=0xbf, third @ 0x80..=0xbf, ..] => {
            let unit =
                u16::from(first & 0x0f) << 12 | u16::from(second & 0x3f) << 6 | u16::from(third & 0x3f);
            (unit >= 0x800).then_some((unit, 3))
        }
        _ => None,
    }
}

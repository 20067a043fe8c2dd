//! Java's modified UTF-8: the encoding of `writeUTF`, and of every text in OpenWire.
//!
//! It differs from UTF-8 in two places: U+0000 takes two bytes, and a character beyond U+FFFF is written as its two
//! UTF-16 surrogates, three bytes each.

use std::borrow::Cow;

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

/// Reads text, which is borrowed where it is the same in UTF-8. A zero byte is taken as U+0000, as Java takes it.
///
/// # Errors
/// [`MessageError::Encoding`] with the first byte that does not fit; a surrogate without its other half is no text.
pub fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, MessageError> {
    // Most text is the same in both encodings, and what UTF-8 writes in four bytes is no modified UTF-8.
    if let Ok(text) = str::from_utf8(bytes)
        && !bytes.iter().any(|byte| *byte >= 0xf0)
    {
        return Ok(text.into());
    }
    let mut text = String::with_capacity(bytes.len());
    let mut offset = 0;
    while let Some(rest) = bytes.get(offset..).filter(|rest| !rest.is_empty()) {
        let (character, length) = next_character(rest).ok_or(MessageError::Encoding { offset })?;
        text.push(character);
        offset += length;
    }
    Ok(text.into())
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(text, &mut bytes);
        bytes
    }

    #[test]
    fn zero_and_characters_beyond_the_first_plane_are_written_as_java_writes_them() {
        assert_eq!(encoded("a\0é名"), b"a\xc0\x80\xc3\xa9\xe5\x90\x8d");
        assert_eq!(encoded("😀"), b"\xed\xa0\xbd\xed\xb8\x80");
        assert_eq!(decode(b"\xed\xa0\xbd\xed\xb8\x80").unwrap(), "😀");
        assert_eq!(decode(b"a\0").unwrap(), "a\0");
    }

    #[test]
    fn what_is_no_modified_utf8_is_refused_with_its_place() {
        let faults: [(&[u8], usize); 9] = [
            (b"ab\xff", 2),
            (b"\x80", 0),
            (b"a\xc3", 1),
            (b"\xe5\x90", 0),
            // U+1F600 as plain UTF-8 writes it.
            (b"\xf0\x9f\x98\x80", 0),
            // Half of a character.
            (b"a\xed\xa0\xbd", 1),
            (b"\xed\xb8\x80", 0),
            (b"\xed\xa0\xbda", 0),
            // Longer than it needs to be.
            (b"\xc1\x81", 0),
        ];
        for (bytes, offset) in faults {
            assert_eq!(decode(bytes), Err(MessageError::Encoding { offset }), "{bytes:x?}");
        }
    }

    proptest! {
        #[test]
        fn every_text_comes_back_and_has_the_length_that_was_foretold(text in prop::collection::vec(any::<char>(), 0..40).prop_map(String::from_iter)) {
            let bytes = encoded(&text);
            prop_assert_eq!(encoded_len(&text), bytes.len());
            prop_assert!(bytes.iter().all(|byte| *byte != 0 && *byte < 0xf0));
            prop_assert_eq!(decode(&bytes), Ok(text.into()));
        }

        #[test]
        fn no_bytes_at_all_make_it_panic(bytes: Vec<u8>) {
            if let Ok(text) = decode(&bytes) {
                prop_assert!(text.len() <= bytes.len());
            }
        }
    }
}

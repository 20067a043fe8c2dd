//! Bytes bodies, and reading and writing them as Java's `DataInput` and `DataOutput` do.

use bytes::Bytes;

use super::{MessageError, modified_utf8};

/// Untyped bytes. Cloning is cheap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BytesBody(Bytes);

impl BytesBody {
    /// A body of these bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// Reads the bytes from the first on. Readers are independent of each other and of the body.
    #[must_use]
    pub fn reader(&self) -> BytesReader {
        BytesReader::new(self.0.clone())
    }

    /// How many bytes there are (`getBodyLength`).
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Writes the bytes of a bytes body: numbers with their highest byte first, as Java's `DataOutput`.
///
/// ```
/// # use corriere_core::Message;
/// # use corriere_core::message::BytesWriter;
/// # fn main() -> Result<(), corriere_core::MessageError> {
/// let mut writer = BytesWriter::new();
/// writer.write_i32(17).write_bool(true).write_utf("grüße")?;
/// let message = Message::bytes(writer);
///
/// let mut reader = message.as_bytes()?.reader();
/// assert_eq!(reader.read_i32()?, 17);
/// assert!(reader.read_bool()?);
/// assert_eq!(reader.read_utf()?, "grüße");
/// assert!(reader.read_i8().is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct BytesWriter(Vec<u8>);

impl BytesWriter {
    /// A writer that has written nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes bytes as they are.
    pub fn write_bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Writes a byte, 1 for true and 0 for false.
    pub fn write_bool(&mut self, value: bool) -> &mut Self {
        self.write_bytes(&[value.into()])
    }

    /// Writes text as modified UTF-8 behind its length in 16 bits (`writeUTF`).
    ///
    /// # Errors
    /// [`MessageError::TextTooLong`], and nothing is written.
    pub fn write_utf(&mut self, text: &str) -> Result<&mut Self, MessageError> {
        let length = modified_utf8::encoded_len(text);
        let prefix = u16::try_from(length).map_err(|_| MessageError::TextTooLong { length })?;
        self.write_u16(prefix);
        modified_utf8::encode(text, &mut self.0);
        Ok(self)
    }

    /// What was written.
    #[must_use]
    pub fn finish(self) -> Bytes {
        self.0.into()
    }
}

impl From<BytesWriter> for Bytes {
    fn from(writer: BytesWriter) -> Self {
        writer.finish()
    }
}

/// Reads the bytes of a bytes body: numbers with their highest byte first, as Java's `DataInput`. A read that fails
/// takes nothing.
#[derive(Clone, Debug)]
pub struct BytesReader {
    bytes: Bytes,
    position: usize,
}

impl BytesReader {
    /// A reader at the first of these bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), position: 0 }
    }

    /// Reads as many bytes as there are, up to the length of `buffer`, and says how many; `None` when there are none
    /// left (`readBytes`).
    pub fn read_bytes(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let rest = self.rest();
        if rest.is_empty() {
            return None;
        }
        let taken = rest.len().min(buffer.len());
        buffer[..taken].copy_from_slice(&rest[..taken]);
        self.position += taken;
        Some(taken)
    }

    /// Reads a byte, of which 0 is false and all else true.
    ///
    /// # Errors
    /// [`MessageError::EndOfStream`].
    pub fn read_bool(&mut self) -> Result<bool, MessageError> {
        self.read_u8().map(|byte| byte != 0)
    }

    /// Reads text in modified UTF-8 behind its length in 16 bits (`readUTF`).
    ///
    /// # Errors
    /// [`MessageError::EndOfStream`], or [`MessageError::Encoding`] with the place in the body.
    pub fn read_utf(&mut self) -> Result<String, MessageError> {
        let rest = self.rest();
        let (prefix, rest) = rest.split_first_chunk().ok_or(MessageError::EndOfStream)?;
        let length = usize::from(u16::from_be_bytes(*prefix));
        let encoded = rest.get(..length).ok_or(MessageError::EndOfStream)?;
        let start = self.position + prefix.len();
        let text = modified_utf8::decode(encoded).map_err(|error| match error {
            MessageError::Encoding { offset } => MessageError::Encoding { offset: start + offset },
            other => other,
        })?;
        let text = text.into_owned();
        self.position = start + length;
        Ok(text)
    }

    /// How many bytes are left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.rest().len()
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let array = *self.rest().first_chunk().ok_or(MessageError::EndOfStream)?;
        self.position += N;
        Ok(array)
    }
}

macro_rules! numbers {
    ($($type:ty: $write:ident, $read:ident, $java:literal;)*) => {
        impl BytesWriter {$(
            #[doc = concat!("Writes ", $java, ".")]
            pub fn $write(&mut self, value: $type) -> &mut Self {
                self.write_bytes(&value.to_be_bytes())
            }
        )*}

        impl BytesReader {$(
            #[doc = concat!("Reads ", $java, ".")]
            ///
            /// # Errors
            /// [`MessageError::EndOfStream`].
            pub fn $read(&mut self) -> Result<$type, MessageError> {
                self.array().map(<$type>::from_be_bytes)
            }
        )*}
    };
}

numbers! {
    i8: write_i8, read_i8, "a `byte`";
    u8: write_u8, read_u8, "an unsigned `byte`";
    i16: write_i16, read_i16, "a `short`";
    u16: write_u16, read_u16, "an unsigned `short`, or a `char`, which is one UTF-16 unit";
    i32: write_i32, read_i32, "an `int`";
    i64: write_i64, read_i64, "a `long`";
    f32: write_f32, read_f32, "a `float`, its bits unchanged";
    f64: write_f64, read_f64, "a `double`, its bits unchanged";
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_written_as_java_writes_them() {
        let mut writer = BytesWriter::new();
        writer.write_bool(true).write_i8(-1).write_i16(0x0102).write_i32(-2).write_i64(3).write_f32(1.0);
        writer.write_f64(-2.0).write_u16(0xfffe).write_u8(0xfd).write_utf("aé\0").unwrap().write_bytes(b"xy");
        let expected = b"\x01\xff\x01\x02\xff\xff\xff\xfe\0\0\0\0\0\0\0\x03\x3f\x80\0\0\
            \xc0\0\0\0\0\0\0\0\xff\xfe\xfd\0\x05a\xc3\xa9\xc0\x80xy";
        assert_eq!(writer.finish().as_ref(), expected);
    }

    #[test]
    fn a_failing_read_does_not_advance() {
        let mut reader = BytesReader::new(&b"\0\x05abc"[..]);
        assert_eq!(reader.read_i64(), Err(MessageError::EndOfStream));
        assert_eq!(
            reader.read_utf(),
            Err(MessageError::EndOfStream),
            "five bytes are foretold, three are there"
        );
        assert_eq!(reader.remaining(), 5);
        assert_eq!(reader.read_i16(), Ok(5));
        let mut buffer = [0; 8];
        assert_eq!(reader.read_bytes(&mut buffer), Some(3));
        assert_eq!(&buffer[..4], b"abc\0");
        assert_eq!(reader.read_bytes(&mut buffer), None);
        assert_eq!(reader.read_bool(), Err(MessageError::EndOfStream));
    }

    #[test]
    fn broken_text_is_refused_with_its_place_in_the_body() {
        let mut reader = BytesReader::new(&b"\x07\0\x03ab\xff\x08"[..]);
        assert_eq!(reader.read_i8(), Ok(7));
        assert_eq!(reader.read_utf(), Err(MessageError::Encoding { offset: 5 }));
        assert_eq!(reader.remaining(), 6);
    }

    #[test]
    fn text_too_long_for_its_length_is_refused_and_nothing_is_written() {
        let mut writer = BytesWriter::new();
        assert!(writer.write_utf(&"a".repeat(65_535)).is_ok());
        let mut writer = BytesWriter::new();
        let refused = writer.write_utf(&"\0".repeat(32_768)).map(|_| ());
        assert_eq!(refused, Err(MessageError::TextTooLong { length: 65_536 }));
        assert!(writer.finish().is_empty());
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_bit_by_bit(
            boolean: bool, byte: i8, short: i16, unit: u16, int: i32, long: i64, float: u32, double: u64,
            text in prop::collection::vec(any::<char>(), 0..40).prop_map(String::from_iter), tail: Vec<u8>,
        ) {
            let mut writer = BytesWriter::new();
            writer.write_f32(f32::from_bits(float)).write_utf(&text).unwrap().write_bool(boolean).write_i8(byte);
            writer.write_i16(short).write_u16(unit).write_i32(int).write_i64(long);
            writer.write_f64(f64::from_bits(double)).write_bytes(&tail);

            let mut reader = BytesBody::new(writer).reader();
            prop_assert_eq!(reader.read_f32().unwrap().to_bits(), float);
            prop_assert_eq!(reader.read_utf().unwrap(), text);
            prop_assert_eq!(reader.read_bool().unwrap(), boolean);
            prop_assert_eq!(reader.read_i8().unwrap(), byte);
            prop_assert_eq!(reader.read_i16().unwrap(), short);
            prop_assert_eq!(reader.read_u16().unwrap(), unit);
            prop_assert_eq!(reader.read_i32().unwrap(), int);
            prop_assert_eq!(reader.read_i64().unwrap(), long);
            prop_assert_eq!(reader.read_f64().unwrap().to_bits(), double);
            prop_assert_eq!(reader.remaining(), tail.len());
        }

        #[test]
        fn no_bytes_at_all_make_a_reader_panic_or_run_past_the_end(bytes: Vec<u8>, reads: Vec<u8>) {
            let mut reader = BytesReader::new(bytes);
            for read in reads {
                let before = reader.remaining();
                let failed = match read % 6 {
                    0 => reader.read_utf().is_err(),
                    1 => reader.read_i8().is_err(),
                    2 => reader.read_i16().is_err(),
                    3 => reader.read_f64().is_err(),
                    4 => reader.read_bytes(&mut [0; 3]).is_none(),
                    _ => reader.read_bool().is_err(),
                };
                prop_assert_eq!(failed, reader.remaining() == before);
            }
        }
    }
}

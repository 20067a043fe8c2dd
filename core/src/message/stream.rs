//! Stream bodies.

use std::sync::Arc;

use super::{FromValue, MessageError, Value};

/// Typed values in a row. Cloning is cheap.
///
/// ```
/// # use corriere_core::message::StreamBody;
/// # fn main() -> Result<(), corriere_core::MessageError> {
/// let mut body = StreamBody::new();
/// body.push("A-17").push(3);
///
/// let mut reader = body.reader();
/// assert_eq!(reader.read::<String>()?, "A-17");
/// assert!(reader.read::<bool>().is_err());
/// assert_eq!(reader.read::<i32>()?, 3, "a failing read takes nothing");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamBody {
    items: Arc<Vec<Value>>,
    size: usize,
}

impl StreamBody {
    /// A body without items.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an item.
    pub fn push(&mut self, value: impl Into<Value>) -> &mut Self {
        let value = value.into();
        self.size += value.size();
        Arc::make_mut(&mut self.items).push(value);
        self
    }

    /// Reads the items from the first on. Readers are independent of each other and of the body.
    #[must_use]
    pub fn reader(&self) -> StreamReader {
        StreamReader { items: Arc::clone(&self.items), position: 0, bytes_taken: None }
    }

    /// All items as they are.
    pub fn iter(&self) -> impl Iterator<Item = &Value> {
        self.items.iter()
    }

    /// How many items there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }
}

/// Reads a [`StreamBody`] item by item. A read that fails takes nothing, so the item can be read as another type.
#[derive(Clone, Debug)]
pub struct StreamReader {
    items: Arc<Vec<Value>>,
    position: usize,
    /// How much of the present item `read_bytes` has taken, while it is not finished.
    bytes_taken: Option<usize>,
}

impl StreamReader {
    /// Reads the next item as `T`. Null can be read as an `Option` or a `Value`.
    ///
    /// # Errors
    /// [`MessageError::EndOfStream`] behind the last item, [`MessageError::PartlyRead`] while
    /// [`StreamReader::read_bytes`] has not finished the present one, else as [`FromValue::from_value`].
    pub fn read<T: FromValue>(&mut self) -> Result<T, MessageError> {
        let item = self.item()?;
        if self.bytes_taken.is_some() {
            return Err(MessageError::PartlyRead { what: self.place() });
        }
        let value = T::from_value(item).map_err(|error| error.at(|| self.place()))?;
        self.position += 1;
        Ok(value)
    }

    /// Reads the next part of a `byte[]` into `buffer` and says how much of it was filled (`readBytes`).
    ///
    /// Less than all means that the item is finished; after a full buffer there may be more, and the call that finds
    /// nothing more returns `None`. A null is `None` at once; an empty `buffer` takes nothing. [`StreamReader::read`] takes a `byte[]` as a whole.
    ///
    /// # Errors
    /// [`MessageError::EndOfStream`] behind the last item, [`MessageError::Format`] when it is no `byte[]`.
    pub fn read_bytes(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, MessageError> {
        let bytes = match self.item()? {
            Value::Bytes(bytes) => bytes,
            Value::Null => {
                self.position += 1;
                return Ok(None);
            }
            other => return Err(MessageError::conversion(other, "byte[]").at(|| self.place())),
        };
        if buffer.is_empty() {
            return Ok(Some(0));
        }
        let rest = bytes.get(self.bytes_taken.unwrap_or(0)..).unwrap_or_default();
        if rest.is_empty() && self.bytes_taken.is_some() {
            self.next();
            return Ok(None);
        }
        let taken = rest.len().min(buffer.len());
        buffer[..taken].copy_from_slice(&rest[..taken]);
        if taken == buffer.len() {
            self.bytes_taken = Some(self.bytes_taken.unwrap_or(0) + taken);
        } else {
            self.next();
        }
        Ok(Some(taken))
    }

    /// How many items are left, the present one included.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.items.len() - self.position
    }

    fn item(&self) -> Result<&Value, MessageError> {
        self.items.get(self.position).ok_or(MessageError::EndOfStream)
    }

    fn next(&mut self) {
        self.position += 1;
        self.bytes_taken = None;
    }

    fn place(&self) -> String {
        format!("item {} of the stream", self.position + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_read_does_not_advance() {
        let mut body = StreamBody::new();
        body.push("12x").push(None::<i32>).push(7_i64);
        let mut reader = body.reader();
        let error = reader.read::<i32>().unwrap_err().to_string();
        assert_eq!(error, "item 1 of the stream is the text `12x`, which is not a number of type int");
        assert!(reader.read_bytes(&mut [0; 4]).is_err());
        assert_eq!(reader.read::<String>(), Ok("12x".to_owned()));
        assert!(matches!(reader.read::<i32>(), Err(MessageError::Format { found: "null", .. })));
        assert_eq!(reader.read::<Option<i32>>(), Ok(None));
        assert!(reader.read::<i32>().is_err());
        assert_eq!(reader.remaining(), 1);
        assert_eq!(reader.read::<i64>(), Ok(7));
        assert_eq!(reader.read::<i64>(), Err(MessageError::EndOfStream));
        assert_eq!(reader.read_bytes(&mut [0; 4]), Err(MessageError::EndOfStream));
    }

    #[test]
    fn a_byte_array_is_drained_before_the_next_item() {
        let mut body = StreamBody::new();
        body.push(vec![1, 2, 3]).push(9);
        let mut reader = body.reader();
        let mut buffer = [0; 2];
        assert_eq!(reader.read_bytes(&mut buffer), Ok(Some(2)));
        assert_eq!(buffer, [1, 2]);
        assert!(matches!(reader.read::<i32>(), Err(MessageError::PartlyRead { .. })));
        assert!(matches!(reader.read::<Vec<u8>>(), Err(MessageError::PartlyRead { .. })));
        assert_eq!(reader.read_bytes(&mut buffer), Ok(Some(1)), "less than all: the item is finished");
        assert_eq!(buffer, [3, 2]);
        assert_eq!(reader.read::<i32>(), Ok(9));
    }

    #[test]
    fn a_buffer_that_fits_exactly_takes_one_more_call_to_finish() {
        let mut body = StreamBody::new();
        body.push(vec![1, 2]).push(9);
        let mut reader = body.reader();
        let mut buffer = [0; 2];
        assert_eq!(reader.read_bytes(&mut buffer), Ok(Some(2)));
        assert!(reader.read::<i32>().is_err());
        assert_eq!(reader.read_bytes(&mut buffer), Ok(None));
        assert_eq!(reader.read::<i32>(), Ok(9));
    }

    #[test]
    fn an_empty_array_is_zero_bytes_a_null_is_none_and_an_empty_buffer_takes_nothing() {
        let mut body = StreamBody::new();
        body.push(Vec::<u8>::new()).push(None::<Vec<u8>>).push(vec![1]);
        let mut reader = body.reader();
        assert_eq!(reader.read_bytes(&mut [0; 4]), Ok(Some(0)));
        assert_eq!(reader.read_bytes(&mut [0; 4]), Ok(None));
        assert_eq!(reader.read_bytes(&mut []), Ok(Some(0)));
        assert_eq!(reader.read::<Vec<u8>>(), Ok(vec![1]), "an empty buffer has not begun it");
    }

    #[test]
    fn a_reader_does_not_see_what_is_pushed_after_it_was_made() {
        let mut body = StreamBody::new();
        body.push(1);
        let mut reader = body.reader();
        body.push(2);
        assert_eq!(reader.read::<i32>(), Ok(1));
        assert_eq!(reader.read::<i32>(), Err(MessageError::EndOfStream));
        assert_eq!(body.len(), 2);
    }
}

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
    /// [`MessageError::EndOfStream`] behind the last item, [`MessageError::Format`] while [`StreamReader::read_bytes`]
    /// has not finished the present one, else as [`FromValue::from_value`].
    pub fn read<T: FromValue>(&mut self) -> Result<T, MessageError> {
        let item = self.item()?;
        if self.bytes_taken.is_some() {
            return Err(MessageError::Format {
                what: self.place(),
                found: "byte[], partly read,",
                expected: "a whole; `read_bytes` has to finish it",
            });
        }
        let value = T::from_value(item).map_err(|error| error.at(|| self.place()))?;
        self.position += 1;
        Ok(value)
    }

    /// Reads the next part of a `byte[]` into `buffer` and says how much of it was filled (`readBytes`).
    ///
    /// Less than all means that the item is finished; after a full buffer there may be more, and the call that finds
    /// nothing more returns `None`. A null is `None` at once. [`StreamReader::read`] takes a `byte[]` as a whole.
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
        let rest = bytes.get(self.bytes_taken.unwrap_or(0)..).unwrap_or_default();
        if rest.is_empty() && self.bytes_taken.is_some() && !buffer.is_empty() {
            self.next();
            return Ok(None);
        }
        let taken = rest.len().min(buffer.len());
        let is_full = taken == buffer.len();
        for (target, source) in buffer.iter_mut().zip(rest) {
            *target = *source;
        }
        if is_full {
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

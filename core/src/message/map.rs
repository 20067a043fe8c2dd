//! Map bodies.

use std::sync::Arc;

use super::convert::{FromValue, read_named};
use super::entries::Entries;
use super::{MessageError, Value};

/// Named, typed values, in the order of their names. Cloning is cheap.
///
/// ```
/// # use corriere_core::message::MapBody;
/// # fn main() -> Result<(), corriere_core::MessageError> {
/// let mut body = MapBody::new();
/// body.set("sku", "A-17")?.set("count", 3)?;
/// assert_eq!(body.read::<i64>("count")?, Some(3));
/// assert_eq!(body.read::<i64>("price")?, None);
/// assert!(body.read::<bool>("count").is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapBody(Entries);

impl MapBody {
    /// A body without entries.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets an entry. Any name will do that is not empty, and null is a value.
    ///
    /// # Errors
    /// [`MessageError::Name`] for an empty name.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) -> Result<&mut Self, MessageError> {
        if name.is_empty() {
            return Err(MessageError::name(name, "it is empty"));
        }
        self.set_unchecked(name, value.into());
        Ok(self)
    }

    /// Sets an entry as it came over a wire.
    pub fn set_unchecked(&mut self, name: impl AsRef<str> + Into<Arc<str>>, value: Value) {
        self.0.insert(name, value);
    }

    /// The entry of this name, read as `T`; `None` when it is absent or null. As a `Value` or an `Option`, null is told
    /// from absent.
    ///
    /// # Errors
    /// As [`FromValue::from_value`].
    pub fn read<T: FromValue>(&self, name: &str) -> Result<Option<T>, MessageError> {
        read_named(self.get(name), "entry", name)
    }

    /// The entry of this name as it is.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Whether there is an entry of this name, null or not (`itemExists`).
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Removes an entry and returns what it held.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    /// All names and values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter()
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(name, _)| name)
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn size(&self) -> usize {
        self.0.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C-56.
    #[test]
    fn a_null_entry_is_there_and_an_absent_one_is_not() {
        let mut body = MapBody::new();
        body.set("null", None::<i32>).unwrap();
        assert!(body.contains("null") && !body.contains("absent"));
        assert_eq!(body.read::<i32>("null"), Ok(None));
        assert_eq!(body.read::<i32>("absent"), Ok(None));
        assert_eq!(body.read::<Option<i32>>("null"), Ok(Some(None)));
        assert_eq!(body.read::<Option<i32>>("absent"), Ok(None));
        assert_eq!(body.read::<Value>("null"), Ok(Some(Value::Null)));
    }

    #[test]
    fn an_entry_needs_a_name_and_any_will_do() {
        let mut body = MapBody::new();
        assert!(matches!(body.set("", 1), Err(MessageError::Name { .. })));
        body.set("NULL", 1).unwrap().set("a-b.c", 'x').unwrap().set("bytes", vec![1]).unwrap();
        body.set("NULL", 2).unwrap();
        assert_eq!(body.names().collect::<Vec<_>>(), ["NULL", "a-b.c", "bytes"]);
        assert_eq!(body.read::<i64>("NULL"), Ok(Some(2)));
        assert_eq!(body.remove("NULL"), Some(Value::Int(2)));
        assert_eq!(body.len(), 2);
    }

    #[test]
    fn a_failing_read_names_the_entry() {
        let mut body = MapBody::new();
        body.set("sku", true).unwrap();
        let error = body.read::<i32>("sku").unwrap_err().to_string();
        assert_eq!(error, "entry `sku` is of type boolean and cannot be read as int");
    }
}

//! Named values, as properties and map bodies hold them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::Value;

/// Values in the order of their names; shared by clones until one of them is changed. Empty ones allocate nothing.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Entries(Option<Arc<Inner>>);

#[derive(Clone, Default, PartialEq, Eq)]
struct Inner {
    values: BTreeMap<Arc<str>, Value>,
    /// Kept with each change, as every send asks for it.
    size: usize,
}

impl Entries {
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.as_ref()?.values.get(name)
    }

    pub(super) fn insert(&mut self, name: impl AsRef<str> + Into<Arc<str>>, value: Value) {
        let inner = Arc::make_mut(self.0.get_or_insert_default());
        inner.size += entry_size(name.as_ref(), &value);
        if let Some(slot) = inner.values.get_mut(name.as_ref()) {
            inner.size -= entry_size(name.as_ref(), slot);
            *slot = value;
        } else {
            inner.values.insert(name.into(), value);
        }
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Value> {
        self.get(name)?;
        let inner = Arc::make_mut(self.0.as_mut()?);
        let value = inner.values.remove(name)?;
        inner.size -= entry_size(name, &value);
        if inner.values.is_empty() {
            self.0 = None;
        }
        Some(value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().flat_map(|inner| &inner.values).map(|(name, value)| (&**name, value))
    }

    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |inner| inner.values.len())
    }

    pub(super) fn size(&self) -> usize {
        self.0.as_ref().map_or(0, |inner| inner.size)
    }
}

impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

fn entry_size(name: &str, value: &Value) -> usize {
    /// The name's pointer and its counts; the tree's own slack is left out.
    const NAME: usize = 32;
    NAME + name.len() + value.size()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_follows_every_change() {
        let mut entries = Entries::default();
        entries.insert("a", Value::from("text"));
        let one = entries.size();
        assert!(one > "a".len() + "text".len());
        entries.insert("b", Value::from(vec![0; 1_000]));
        assert!(entries.size() > one + 1_000);
        entries.insert("b", Value::Null);
        entries.remove("b");
        assert_eq!(entries.size(), one, "what was replaced and removed is not counted");
        entries.remove("a");
        assert_eq!((entries.size(), entries.len()), (0, 0));
        assert_eq!(entries, Entries::default());
    }

    #[test]
    fn a_change_to_one_clone_is_not_seen_by_the_other() {
        let mut entries = Entries::default();
        entries.insert("a", Value::Int(1));
        let before = entries.clone();
        entries.insert("a", Value::Int(2));
        assert_eq!(before.get("a"), Some(&Value::Int(1)));
        assert_eq!(entries.remove("b"), None);
    }
}

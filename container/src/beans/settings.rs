//! What the configuration says of a bean.

use std::fmt;

use config::{Value, ValueKind};
use serde::de::DeserializeOwned;

use super::BeanBuildError;
use super::settings_reader::SettingsReader;

/// What stands in `[beans.NAME]` besides the type. Shown for debugging it names the keys, and no value.
#[derive(Clone)]
pub struct BeanSettings(Value);

impl BeanSettings {
    pub(crate) fn new(value: Value) -> Self {
        Self(value)
    }

    /// No settings at all.
    pub(crate) fn empty() -> Self {
        Self(Value::new(None, ValueKind::Table(config::Map::new())))
    }

    /// The settings as the bean's own type. Keys that it does not know are refused if it denies unknown fields. What the
    /// environment and placeholders bring is text, which stands for numbers and truth values too.
    ///
    /// # Errors
    /// [`BeanBuildError::Settings`], naming the key. It shows no values; only what the type's own code says of a value that
    /// is not from the environment is passed on.
    pub fn read<C: DeserializeOwned>(self) -> Result<C, BeanBuildError> {
        C::deserialize(SettingsReader::new(self.0))
            .map_err(|error| BeanBuildError::Settings(error.to_string()))
    }

    /// Makes sure that there are none.
    ///
    /// # Errors
    /// [`BeanBuildError::NoSettings`].
    pub fn none(self) -> Result<(), BeanBuildError> {
        self.keys().next().map_or(Ok(()), |key| Err(BeanBuildError::NoSettings { key: key.clone() }))
    }

    fn keys(&self) -> impl Iterator<Item = &String> {
        let table = match &self.0.kind {
            ValueKind::Table(table) => Some(table),
            _ => None,
        };
        table.into_iter().flat_map(|table| table.keys())
    }
}

impl fmt::Debug for BeanSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BeanSettings")?;
        f.debug_set().entries(self.keys()).finish()
    }
}

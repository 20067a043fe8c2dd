//! What the configuration says of a bean.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use config::{Value, ValueKind};
use serde::de::DeserializeOwned;

use super::BeanBuildError;
use super::settings_reader::SettingsReader;
use crate::config::Place;
use crate::nearest::nearest;

/// What stands in `[beans.NAME]` besides the type. Shown for debugging it names the keys, and no value.
#[derive(Clone)]
pub struct BeanSettings {
    value: Value,
    /// Where each key stands, by its path within the table.
    places: Arc<HashMap<Vec<String>, KeyPlaces>>,
}

/// Where a key stands, and where its value.
#[derive(Clone, Debug)]
pub(crate) struct KeyPlaces {
    pub(crate) key: Place,
    pub(crate) value: Place,
}

impl BeanSettings {
    pub(crate) fn new(value: Value, places: HashMap<Vec<String>, KeyPlaces>) -> Self {
        Self { value, places: Arc::new(places) }
    }

    /// No settings at all.
    pub(crate) fn empty() -> Self {
        Self::new(Value::new(None, ValueKind::Table(config::Map::new())), HashMap::new())
    }

    /// Where what an error is about stands, as far as that is known.
    pub(crate) fn place_of(&self, error: &BeanBuildError) -> Option<&Place> {
        match error {
            BeanBuildError::Settings { path, .. } | BeanBuildError::MissingSetting { path, .. } => {
                self.places.get(path).map(|places| &places.value)
            }
            BeanBuildError::UnknownSetting { path, .. } => self.places.get(path).map(|places| &places.key),
            BeanBuildError::NoSettings { key } => {
                self.places.get(std::slice::from_ref(key)).map(|places| &places.key)
            }
            BeanBuildError::Constructor(_) | BeanBuildError::Panic(_) | BeanBuildError::Bean(_) => None,
        }
    }

    /// The settings as the bean's own type. Keys that it does not know are refused if it denies unknown fields. What the
    /// environment and placeholders bring is text, which stands for numbers and truth values too.
    ///
    /// # Errors
    /// [`BeanBuildError::Settings`], [`BeanBuildError::UnknownSetting`], naming the key. It shows no values; only what the type's own code says of a value that
    /// is not from the environment is passed on.
    pub fn read<C: DeserializeOwned>(self) -> Result<C, BeanBuildError> {
        let error = match C::deserialize(SettingsReader::new(self.value.clone())) {
            Ok(read) => return Ok(read),
            Err(error) => BeanBuildError::from(error),
        };
        Err(match error {
            BeanBuildError::MissingSetting { path, field, reason } => {
                let nearest = nearest(field, self.keys_in(&path));
                let suggestion = nearest.map(|nearest| format!("; there is `{nearest}`")).unwrap_or_default();
                BeanBuildError::MissingSetting { path, field, reason: reason + &suggestion }
            }
            other => other,
        })
    }

    /// Makes sure that there are none.
    ///
    /// # Errors
    /// [`BeanBuildError::NoSettings`].
    pub fn none(self) -> Result<(), BeanBuildError> {
        self.keys().next().map_or(Ok(()), |key| Err(BeanBuildError::NoSettings { key: key.clone() }))
    }

    /// The keys of a table within.
    fn keys_in(&self, path: &[String]) -> impl Iterator<Item = &str> {
        let within =
            self.places.keys().filter(move |key| key.len() == path.len() + 1 && key.starts_with(path));
        within.filter_map(|key| key.last()).map(String::as_str)
    }

    fn keys(&self) -> impl Iterator<Item = &String> {
        let table = match &self.value.kind {
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

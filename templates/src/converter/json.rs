//! JSON in text and bytes messages.

use std::collections::BTreeMap;

use corriere_core::{Message, Properties};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Serialize};

use super::json_body::{JsonBody, place_of_failure, read_from};
use super::type_name::{name_asked_for, name_of};
use super::{ConversionError, MessageConverter, Visit};

/// What the property `content_type` says of JSON.
pub(super) const APPLICATION_JSON: &str = "application/json";

/// Writes any value as JSON in a text message, and reads JSON from a text or bytes message.
///
/// It sets the property `content_type` to `application/json`. A text message without that property gives its text to a
/// `String` as it stands; everything else reads it as JSON. The type that is asked for decides how the body is
/// read; the property `_type` plays no part in it unless ids are given with [`JsonConverter::type_id`].
#[derive(Clone, Debug, Default)]
pub struct JsonConverter {
    type_ids: TypeIds,
}

impl JsonConverter {
    /// A converter without type ids.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes `id` as the property `_type` of messages made from the type that serde knows as `name` (the name of the
    /// struct or enum, or its `#[serde(rename)]`), and refuses to read a message with another id as that type.
    #[must_use]
    pub fn type_id(mut self, name: &str, id: &str) -> Self {
        self.type_ids.insert(name, id);
        self
    }

    pub(super) fn encode<T: Serialize + ?Sized>(&self, value: &T) -> Result<Message, ConversionError> {
        let text = serde_json::to_string(value).map_err(ConversionError::write)?;
        let mut message = Message::text(text);
        message.set_property(Properties::CONTENT_TYPE, APPLICATION_JSON)?;
        if let Some(id) = self.type_ids.of(|| name_of(value)) {
            message.set_property(Properties::TYPE_NAME, id)?;
        }
        Ok(message)
    }

    pub(super) fn decode<T: DeserializeOwned>(&self, message: &Message) -> Result<T, ConversionError> {
        self.type_ids.check(message, || name_asked_for(|probe| drop(T::deserialize(probe))))?;
        decode_body(message, JsonBody::of(message)?)
    }
}

impl MessageConverter for JsonConverter {
    fn to_message(&self, value: &dyn erased_serde::Serialize) -> Result<Message, ConversionError> {
        self.encode(value)
    }

    fn read(&self, message: &Message, visit: Visit<'_>) -> Result<(), ConversionError> {
        self.type_ids.check(message, || name_asked_by(visit))?;
        read_body(message, JsonBody::of(message)?, visit)
    }
}

/// Reads a `T` from the JSON in `body`; an error says where it is.
pub(super) fn decode_body<'de, T: Deserialize<'de>>(
    message: &Message,
    body: JsonBody<'de>,
) -> Result<T, ConversionError> {
    read_from(body).map_err(|error| {
        let place = place_of_failure(body, |json| T::deserialize(json).map(drop));
        ConversionError::read(message, error).at(place)
    })
}

/// Calls `visit` with the JSON in `body`; an error says where it is.
pub(super) fn read_body(
    message: &Message,
    body: JsonBody<'_>,
    visit: Visit<'_>,
) -> Result<(), ConversionError> {
    let outcome = body.read_all(|json| {
        visit(&mut <dyn erased_serde::Deserializer<'_>>::erase(json)).map_err(serde_json::Error::custom)
    });
    outcome.map_err(|error| {
        let place = place_of_failure(body, |json| {
            visit(&mut <dyn erased_serde::Deserializer<'_>>::erase(json)).map_err(serde_json::Error::custom)
        });
        ConversionError::read(message, error).at(place)
    })
}

/// The name of the type that `visit` reads.
pub(super) fn name_asked_by(visit: Visit<'_>) -> Option<&'static str> {
    name_asked_for(|probe| drop(visit(&mut <dyn erased_serde::Deserializer<'_>>::erase(probe))))
}

/// Ids for the property `_type`, by serde's names of the types.
#[derive(Clone, Debug, Default)]
pub(super) struct TypeIds(BTreeMap<Box<str>, Box<str>>);

impl TypeIds {
    pub(super) fn insert(&mut self, name: &str, id: &str) {
        self.0.insert(name.into(), id.into());
    }

    /// The id of the type of this name, where it has one.
    pub(super) fn of(&self, name: impl FnOnce() -> Option<&'static str>) -> Option<&str> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(name()?).map(|id| &**id)
    }

    /// Refuses a message whose `_type` is not that of the type asked for.
    pub(super) fn check(
        &self,
        message: &Message,
        name: impl FnOnce() -> Option<&'static str>,
    ) -> Result<(), ConversionError> {
        let Some(expected) = self.of(name) else { return Ok(()) };
        match message.property::<String>(Properties::TYPE_NAME) {
            Ok(Some(found)) if found != expected => Err(ConversionError::Type {
                message: Box::new(message.into()),
                found,
                expected: expected.into(),
                wanted: None,
            }),
            _ => Ok(()),
        }
    }
}

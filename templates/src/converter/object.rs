//! Rust objects as opaque bytes.

use corriere_core::message::ObjectBody;
use corriere_core::{Body, Message, Properties};

use super::json::{APPLICATION_JSON, TypeIds, name_asked_by, read_body};
use super::json_body::JsonBody;
use super::read_value::read_nothing;
use super::type_name::name_of;
use super::{ConversionError, MessageConverter, Visit};

/// Writes any value as an object message: bytes that the broker does not look into, with the properties
/// `content_type` (how they are encoded: `application/json`) and `_type` (serde's name of the type, where it has one).
///
/// It reads object and bytes messages that say they are encoded so. Java's serialised objects do not, and no
/// name that came with a message is ever turned into a type.
#[derive(Clone, Debug, Default)]
pub struct ObjectConverter {
    type_ids: TypeIds,
}

impl ObjectConverter {
    /// A converter that writes serde's names of types as they are, and reads whatever type is asked for.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`JsonConverter::type_id`](super::JsonConverter::type_id).
    #[must_use]
    pub fn type_id(mut self, name: &str, id: &str) -> Self {
        self.type_ids.insert(name, id);
        self
    }
}

impl MessageConverter for ObjectConverter {
    fn to_message(&self, value: &dyn erased_serde::Serialize) -> Result<Message, ConversionError> {
        let bytes = serde_json::to_vec(value).map_err(ConversionError::write)?;
        let mut message = Message::new(Body::Object(ObjectBody::new(bytes)));
        message.set_property(Properties::CONTENT_TYPE, APPLICATION_JSON)?;
        if let Some(name) = name_of(value) {
            message.set_property(Properties::TYPE_NAME, self.type_ids.of(|| Some(name)).unwrap_or(name))?;
        }
        Ok(message)
    }

    fn read(&self, message: &Message, visit: Visit<'_>) -> Result<(), ConversionError> {
        const EXPECTED: &str = "an object or bytes body whose property `content_type` is application/json";
        let bytes = match message.body() {
            Body::Object(body) => body.as_bytes(),
            Body::Bytes(body) => body.as_bytes(),
            Body::Empty => return read_nothing(message, visit),
            _ => return Err(ConversionError::unexpected_body(message, EXPECTED)),
        };
        let content_type = message.property::<String>(Properties::CONTENT_TYPE).ok().flatten();
        if content_type.as_deref() != Some(APPLICATION_JSON) {
            return Err(ConversionError::unexpected_body(message, EXPECTED));
        }
        self.type_ids.check(message, || name_asked_by(visit))?;
        read_body(message, JsonBody::declared(bytes), visit)
    }
}

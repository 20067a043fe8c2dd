//! Plain bytes.

use corriere_core::{Body, Message, Value};

use super::read_value::read_value;
use super::write_value::to_value;
use super::{ConversionError, MessageConverter, Visit};

/// Writes `Vec<u8>`, `bytes::Bytes`, byte slices and arrays, and what serde otherwise takes for bytes, as the body of a bytes
/// message, and reads them from it.
#[derive(Clone, Copy, Debug, Default)]
pub struct BytesConverter;

impl MessageConverter for BytesConverter {
    fn to_message(&self, value: &dyn erased_serde::Serialize) -> Result<Message, ConversionError> {
        match to_value(value) {
            Ok(Value::Bytes(bytes)) => Ok(Message::bytes(bytes)),
            Ok(other) => Err(refused(&format!("a {}", other.type_name()))),
            Err(found) => Err(refused(&found.to_string())),
        }
    }

    fn read(&self, message: &Message, visit: Visit<'_>) -> Result<(), ConversionError> {
        let value = match message.body() {
            Body::Bytes(body) => Value::Bytes(body.as_bytes().clone()),
            Body::Empty => Value::Null,
            _ => return Err(ConversionError::unexpected_body(message, "a bytes body")),
        };
        read_value(message, &value, visit)
    }
}

fn refused(found: &str) -> ConversionError {
    ConversionError::write(format_args!("it is {found}; expected bytes, such as a `Vec<u8>`"))
}

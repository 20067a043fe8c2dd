//! Plain text.

use corriere_core::{Body, Message, Value};

use super::read_value::read_value;
use super::write_value::to_value;
use super::{ConversionError, MessageConverter, Visit};

/// Writes strings, characters, numbers and booleans as the text of a text message, and reads them from it.
///
/// `None` and `()` are an absent text, which is not the same as an empty one.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextConverter;

impl MessageConverter for TextConverter {
    fn to_message(&self, value: &dyn erased_serde::Serialize) -> Result<Message, ConversionError> {
        const EXPECTED: &str = "expected text, a character, a number or a boolean";
        let value = to_value(value)
            .map_err(|found| ConversionError::write(format_args!("it is {found}; {EXPECTED}")))?;
        let text = match value {
            Value::Null => None,
            Value::String(text) => Some(text),
            Value::Char(unit) => char::from_u32(unit.into()).map(|character| character.to_string().into()),
            Value::Boolean(value) => Some(value.to_string().into()),
            Value::Byte(value) => Some(value.to_string().into()),
            Value::Short(value) => Some(value.to_string().into()),
            Value::Int(value) => Some(value.to_string().into()),
            Value::Long(value) => Some(value.to_string().into()),
            Value::Float(value) => Some(value.to_string().into()),
            Value::Double(value) => Some(value.to_string().into()),
            Value::Bytes(_) => {
                return Err(ConversionError::write(format_args!("it is a list of bytes; {EXPECTED}")));
            }
        };
        Ok(Message::new(Body::Text(text)))
    }

    fn read(&self, message: &Message, visit: Visit<'_>) -> Result<(), ConversionError> {
        let value = match message.body() {
            Body::Text(Some(text)) => Value::String(text.clone()),
            Body::Text(None) | Body::Empty => Value::Null,
            _ => return Err(ConversionError::unexpected_body(message, "a text body")),
        };
        read_value(message, &value, visit)
    }
}

//! `JmsTemplate` and what belongs to it.

use std::fmt::Debug;

use corriere_core::Message;
use serde::de::DeserializeOwned;

/// Turns values into messages and back.
pub trait MessageConverter: Debug + Send + Sync {
    /// The message for `value`.
    ///
    /// # Errors
    /// When the value cannot be represented.
    fn to_message(&self, value: &dyn erased_serde::Serialize) -> Result<Message, ConversionError>;

    /// Shows the body of `message` to `visit` as a deserializer.
    ///
    /// # Errors
    /// When the body cannot be read, or `visit` fails.
    fn read(
        &self,
        message: &Message,
        visit: &mut dyn FnMut(&mut dyn erased_serde::Deserializer<'_>) -> Result<(), erased_serde::Error>,
    ) -> Result<(), ConversionError>;
}

impl dyn MessageConverter {
    /// Reads the body as `T`.
    ///
    /// # Errors
    /// As [`MessageConverter::read`].
    pub fn decode<T: DeserializeOwned>(&self, message: &Message) -> Result<T, ConversionError> {
        let mut value = None;
        self.read(message, &mut |deserializer| {
            value = Some(erased_serde::deserialize(deserializer)?);
            Ok(())
        })?;
        value.ok_or(ConversionError)
    }
}

/// Why a body could not be converted.
#[derive(Debug, thiserror::Error)]
#[error("the body could not be converted")]
pub struct ConversionError;

//! What stands in for a message converter until it is made.

use corriere_core::Message;
use corriere_templates::converter::Visit;
use corriere_templates::{ConversionError, MessageConverter, erased_serde};
use thiserror::Error;

/// A message converter that is a bean, in a plan whose beans are not made. It converts nothing.
#[derive(Debug)]
pub(super) struct UnmadeConverter {
    pub(super) name: String,
}

#[derive(Debug, Error)]
#[error("the message converter `{name}` is made when the application starts")]
struct NotMade {
    name: String,
}

impl MessageConverter for UnmadeConverter {
    fn to_message(&self, _value: &dyn erased_serde::Serialize) -> Result<Message, ConversionError> {
        Err(ConversionError::write(NotMade { name: self.name.clone() }))
    }

    fn read(&self, message: &Message, _visit: Visit<'_>) -> Result<(), ConversionError> {
        Err(ConversionError::read(message, NotMade { name: self.name.clone() }))
    }
}

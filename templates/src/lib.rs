//! [`JmsTemplate`], which sends and receives in one call each, and the [message converters](converter) between a
//! message's body and the application's types.

pub mod converter;
mod template;

pub use converter::{
    BytesConverter, ConversionError, ConverterType, JsonConverter, MapConverter, MessageConverter,
    ObjectConverter, TextConverter,
};
pub use template::{
    Address, DestinationResolver, DynamicDestinations, JmsTemplate, JmsTemplateBuilder, ReceiveTimeout,
    SendBuilder, TemplateError,
};

// What an implementor of `MessageConverter` needs, so that nobody has to match our version by hand.
pub use erased_serde;

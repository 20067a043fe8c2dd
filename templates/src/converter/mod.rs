//! Conversion between a message's body and the application's types.
//!
//! | converter | writes | reads |
//! | --- | --- | --- |
//! | [`JsonConverter`] (the default) | JSON in a text message | JSON in a text or bytes message |
//! | [`TextConverter`] | strings, characters and numbers as a text message | a text message |
//! | [`BytesConverter`] | bytes as a bytes message | a bytes message |
//! | [`MapConverter`] | the fields of a struct or map as the typed entries of a map message | a map message |
//! | [`ObjectConverter`] | any type as an object message | an object or bytes message that names its encoding |
//!
//! A body that is absent reads as `None` or `()`, and as nothing else; an empty text reads as an empty `String`.

mod bytes;
mod error;
mod json;
mod json_body;
mod map;
mod object;
mod read_value;
#[cfg(test)]
mod tests;
mod text;
mod type_name;
mod write_value;

use std::any::{Any, type_name};
use std::fmt::Debug;
use std::sync::Arc;

use corriere_core::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::bytes::BytesConverter;
pub use self::error::{ConversionError, MessageName};
pub use self::json::JsonConverter;
pub use self::map::MapConverter;
pub use self::object::ObjectConverter;
pub use self::text::TextConverter;

/// What takes the value in a message's body from a deserializer; see [`MessageConverter::read`].
pub type Visit<'a> =
    &'a mut dyn FnMut(&mut dyn erased_serde::Deserializer<'_>) -> Result<(), erased_serde::Error>;

/// Writes values as messages and reads them back.
///
/// Templates and listeners call it through `dyn MessageConverter`, by [`encode`](trait@MessageConverter#method.encode)
/// and [`decode`](trait@MessageConverter#method.decode). An implementation needs a serde format and little else:
///
/// ```
/// use corriere_core::{Body, Message};
/// use corriere_templates::erased_serde::{self, Deserializer};
/// use corriere_templates::converter::{ConversionError, MessageConverter, Visit};
///
/// /// JSON with an indent, for people who read queues.
/// #[derive(Debug)]
/// struct PrettyJson;
///
/// impl MessageConverter for PrettyJson {
///     fn to_message(&self, value: &dyn erased_serde::Serialize) -> Result<Message, ConversionError> {
///         serde_json::to_string_pretty(value).map(Message::text).map_err(ConversionError::write)
///     }
///
///     fn read(&self, message: &Message, visit: Visit<'_>) -> Result<(), ConversionError> {
///         let Body::Text(Some(text)) = message.body() else {
///             return Err(ConversionError::unexpected_body(message, "text"));
///         };
///         let mut json = serde_json::Deserializer::from_str(text);
///         visit(&mut <dyn Deserializer<'_>>::erase(&mut json)).map_err(|error| ConversionError::read(message, error))
///     }
/// }
///
/// let converter: &dyn MessageConverter = &PrettyJson;
/// let message = converter.encode(&[1, 2])?;
/// assert_eq!(converter.decode::<Vec<u8>>(&message)?, [1, 2]);
/// # Ok::<(), ConversionError>(())
/// ```
pub trait MessageConverter: Any + Debug + Send + Sync {
    /// Writes `value` as a new message.
    ///
    /// # Errors
    /// When the value has a shape that the converter cannot write.
    fn to_message(&self, value: &dyn erased_serde::Serialize) -> Result<Message, ConversionError>;

    /// Reads the body of `message`: calls `visit` with a deserializer over it. Where `visit` fails it may be called
    /// once more with a fresh deserializer, to find out where in the body it failed.
    ///
    /// # Errors
    /// When the body is not of a kind that the converter reads, or `visit` fails.
    fn read(&self, message: &Message, visit: Visit<'_>) -> Result<(), ConversionError>;
}

impl dyn MessageConverter {
    /// Writes `value` as a new message.
    ///
    /// # Errors
    /// As [`MessageConverter::to_message`].
    pub fn encode<T: Serialize + ?Sized>(&self, value: &T) -> Result<Message, ConversionError> {
        // JSON is what nearly everyone uses; it is spared the calls through a trait object for each field.
        let encoded = match self.as_json() {
            Some(json) => json.encode(value),
            None => self.to_message(&value),
        };
        encoded.map_err(|error| error.written_from(type_name::<T>()))
    }

    /// Reads the body of `message` as a `T`.
    ///
    /// # Errors
    /// As [`MessageConverter::read`]; the error names the message, the body found and `T`.
    pub fn decode<T: DeserializeOwned>(&self, message: &Message) -> Result<T, ConversionError> {
        let decoded = match self.as_json() {
            Some(json) => json.decode(message),
            None => self.decode_erased(message),
        };
        decoded.map_err(|error| error.asked_for(type_name::<T>()))
    }

    fn decode_erased<T: DeserializeOwned>(&self, message: &Message) -> Result<T, ConversionError> {
        let mut value = None;
        self.read(message, &mut |deserializer| {
            value = Some(erased_serde::deserialize(deserializer)?);
            Ok(())
        })?;
        value.ok_or_else(|| ConversionError::read(message, "the converter has read nothing"))
    }

    fn as_json(&self) -> Option<&JsonConverter> {
        (self as &dyn Any).downcast_ref()
    }
}

/// A converter by the name under which a configuration asks for it. Collected with `inventory`:
///
/// ```
/// # use std::sync::Arc;
/// use corriere_templates::{ConverterType, JsonConverter};
///
/// inventory::submit! {
///     ConverterType::new::<JsonConverter>("orders", || Arc::new(JsonConverter::new().type_id("Order", "shop.order")))
/// }
///
/// assert_eq!(ConverterType::named("orders").count(), 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ConverterType {
    /// What stands behind `type =`.
    pub name: &'static str,
    /// The Rust type, for messages.
    pub rust_type: fn() -> &'static str,
    /// Makes a converter of this type.
    pub build: fn() -> Arc<dyn MessageConverter>,
}

inventory::collect!(ConverterType);

inventory::submit!(ConverterType::new::<JsonConverter>("json", || Arc::new(JsonConverter::new())));
inventory::submit!(ConverterType::new::<TextConverter>("text", || Arc::new(TextConverter)));
inventory::submit!(ConverterType::new::<BytesConverter>("bytes", || Arc::new(BytesConverter)));
inventory::submit!(ConverterType::new::<MapConverter>("map", || Arc::new(MapConverter)));
inventory::submit!(ConverterType::new::<ObjectConverter>("object", || Arc::new(ObjectConverter::new())));

impl ConverterType {
    /// The converter `C` under this name.
    #[must_use]
    pub const fn new<C: MessageConverter>(
        name: &'static str,
        build: fn() -> Arc<dyn MessageConverter>,
    ) -> Self {
        Self { name, rust_type: type_name::<C>, build }
    }

    /// All converter types that are linked into this program, in no order.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        inventory::iter::<Self>.into_iter()
    }

    /// The converter types of this name. More than one is a mistake that an application refuses, as only the linker's
    /// order would choose.
    pub fn named(name: &str) -> impl Iterator<Item = &'static Self> {
        Self::all().filter(move |converter| converter.name == name)
    }
}

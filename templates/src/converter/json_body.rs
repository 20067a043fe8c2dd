//! JSON in a body, as a deserializer.

use std::cell::Cell;

use corriere_core::{Body, Message, Properties};
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde_json::Error;
use serde_json::de::SliceRead;

use super::ConversionError;

/// The JSON in a message's body, and how far the message vouches for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonBody<'de> {
    bytes: &'de [u8],
    shape: Shape<'de>,
}

#[derive(Clone, Copy, Debug)]
enum Shape<'de> {
    Json,
    /// A text that does not say that it is JSON. Most programs send plain text like that, so a string takes it as it
    /// stands; anything else is read as JSON.
    Undeclared(&'de str),
    Empty,
    Absent,
}

impl<'de> JsonBody<'de> {
    /// The JSON of a text or bytes message.
    pub(super) fn of(message: &'de Message) -> Result<Self, ConversionError> {
        let (bytes, text) = match message.body() {
            Body::Empty | Body::Text(None) => return Ok(Self { bytes: &[], shape: Shape::Absent }),
            Body::Text(Some(text)) => (text.as_bytes(), Some(&**text)),
            Body::Bytes(body) => (&**body.as_bytes(), None),
            _ => return Err(ConversionError::unexpected_body(message, "JSON in a text or bytes body")),
        };
        let shape = match text {
            _ if bytes.is_empty() => Shape::Empty,
            Some(text) if !says_json(message) => Shape::Undeclared(text),
            _ => Shape::Json,
        };
        Ok(Self { bytes, shape })
    }

    /// JSON that is known to be that.
    pub(super) fn declared(bytes: &'de [u8]) -> Self {
        Self { bytes, shape: Shape::Json }
    }

    /// Reads all of it with `read`; what follows the value is an error.
    pub(super) fn read_all<R>(
        self,
        read: impl FnOnce(JsonDeserializer<'_, 'de>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut json = serde_json::Deserializer::from_slice(self.bytes);
        let was_json = Cell::new(false);
        let value = read(JsonDeserializer { json: &mut json, was_json: &was_json, shape: self.shape })?;
        // Text that was taken as it stands has no end that JSON could tell.
        if was_json.get() {
            json.end()?;
        }
        Ok(value)
    }
}

fn says_json(message: &Message) -> bool {
    let content_type =
        message.property::<String>(Properties::CONTENT_TYPE).ok().flatten().unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    media_type.eq_ignore_ascii_case("application/json") || media_type.to_ascii_lowercase().ends_with("+json")
}

/// Reads one value from a [`JsonBody`].
pub(super) struct JsonDeserializer<'a, 'de> {
    json: &'a mut serde_json::Deserializer<SliceRead<'de>>,
    was_json: &'a Cell<bool>,
    shape: Shape<'de>,
}

impl<'a, 'de> JsonDeserializer<'a, 'de> {
    /// Whether the text is JSON's `null`, which an `Option` takes as `None` also where a string would take it as text.
    fn is_null(&self) -> bool {
        matches!(self.shape, Shape::Undeclared(text) if text.trim() == "null")
    }

    /// The body as JSON, whatever it says of itself.
    fn json(self) -> Result<&'a mut serde_json::Deserializer<SliceRead<'de>>, Error> {
        if matches!(self.shape, Shape::Absent) {
            return Err(Error::custom("nothing is there, which only an `Option` or `()` can take"));
        }
        self.was_json.set(true);
        Ok(self.json)
    }
}

macro_rules! read_as_json {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, Error> {
            self.json()?.$method($($argument,)* visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for JsonDeserializer<'_, 'de> {
    type Error = Error;

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.shape {
            Shape::Undeclared(text) => visitor.visit_borrowed_str(text),
            Shape::Empty => visitor.visit_borrowed_str(""),
            Shape::Json | Shape::Absent => self.json()?.deserialize_str(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.shape {
            Shape::Absent => visitor.visit_none(),
            Shape::Json => self.json()?.deserialize_option(visitor),
            Shape::Undeclared(_) if self.is_null() => self.json()?.deserialize_option(visitor),
            Shape::Undeclared(_) | Shape::Empty => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.shape {
            Shape::Absent | Shape::Empty => visitor.visit_unit(),
            Shape::Json | Shape::Undeclared(_) => self.json()?.deserialize_unit(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.shape {
            // serde_json has to see the name itself, as it passes raw and arbitrary-precision values by it.
            Shape::Json => self.json()?.deserialize_newtype_struct(name, visitor),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    read_as_json! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_unit_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_map();
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }
}

/// Where in the body reading it with `read` fails. Only asked after a failure: keeping track of the way costs.
pub(super) fn place_of_failure<'de>(
    body: JsonBody<'de>,
    read: impl FnOnce(serde_path_to_error::Deserializer<'_, '_, JsonDeserializer<'_, 'de>>) -> Result<(), Error>,
) -> String {
    let mut track = serde_path_to_error::Track::new();
    let _ = body.read_all(|json| read(serde_path_to_error::Deserializer::new(json, &mut track)));
    track.path().to_string()
}

/// Reads a `T` from `body`.
pub(super) fn read_from<'de, T: Deserialize<'de>>(body: JsonBody<'de>) -> Result<T, Error> {
    body.read_all(|json| T::deserialize(json))
}

//! Why a body could not be converted.

use std::fmt;

use corriere_core::{Body, Destination, Message, MessageError, MessageId};
use thiserror::Error;

/// Why a value could not be written as a message, or a message not read as a value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConversionError {
    /// The value cannot be written.
    #[error("a value{} cannot be written as a message: {reason}", of(.value))]
    Write {
        /// The type of the value, where it is known.
        value: Option<&'static str>,
        /// What stood in the way.
        reason: String,
    },
    /// A field of the value cannot be written.
    #[error(
        "field `{field}` cannot be an entry of a map message: it is {reason}; expected a scalar, text or bytes"
    )]
    Field {
        /// The field's name.
        field: String,
        /// What it is instead.
        reason: String,
    },
    /// The message has a body of another kind.
    #[error("{message} has {found}; expected {expected}{}", asked(.wanted))]
    Body {
        /// Which message.
        message: Box<MessageName>,
        /// The kind of its body.
        found: &'static str,
        /// What the converter reads.
        expected: &'static str,
        /// The type that was asked for, where it is known.
        wanted: Option<&'static str>,
    },
    /// The body was written from another type.
    #[error("{message} holds a `{found}` by its property `_type`; expected `{expected}`{}", asked(.wanted))]
    Type {
        /// Which message.
        message: Box<MessageName>,
        /// The id in the property `_type`.
        found: String,
        /// The id of the type that was asked for.
        expected: String,
        /// The type that was asked for, where it is known.
        wanted: Option<&'static str>,
    },
    /// The body does not hold a value of the type that was asked for.
    #[error("{message}: {found} cannot be read{}{}: {reason}", asked(.wanted), at(.path))]
    Read {
        /// Which message.
        message: Box<MessageName>,
        /// The kind of its body.
        found: &'static str,
        /// The type that was asked for, where it is known.
        wanted: Option<&'static str>,
        /// Where in the body, such as `lines[2].price`, where that is known.
        path: Option<String>,
        /// What serde says.
        reason: String,
    },
}

/// Which message an error speaks of, by id and destination as far as it has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageName {
    /// The message's id.
    pub id: Option<MessageId>,
    /// Where it was sent.
    pub destination: Option<Destination>,
}

impl ConversionError {
    /// The value cannot be written, for this reason.
    pub fn write(reason: impl fmt::Display) -> Self {
        Self::Write { value: None, reason: reason.to_string() }
    }

    /// The body is of a kind that the converter does not read; `expected` says what it reads.
    #[must_use]
    pub fn unexpected_body(message: &Message, expected: &'static str) -> Self {
        Self::Body { message: named(message), found: body_kind(message.body()), expected, wanted: None }
    }

    /// The body cannot be read, for this reason.
    pub fn read(message: &Message, reason: impl fmt::Display) -> Self {
        Self::Read {
            message: named(message),
            found: body_kind(message.body()),
            wanted: None,
            path: None,
            reason: reason.to_string(),
        }
    }

    /// The same error, naming the place in the body where reading failed.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        if let Self::Read { path, .. } = &mut self {
            *path = Some(place.to_string()).filter(|place| !place.is_empty() && place != ".");
        }
        self
    }

    pub(super) fn written_from(mut self, type_name: &'static str) -> Self {
        if let Self::Write { value, .. } = &mut self {
            *value = Some(type_name);
        }
        self
    }

    pub(super) fn asked_for(mut self, type_name: &'static str) -> Self {
        if let Self::Body { wanted, .. } | Self::Type { wanted, .. } | Self::Read { wanted, .. } = &mut self {
            *wanted = Some(type_name);
        }
        self
    }
}

impl From<MessageError> for ConversionError {
    fn from(error: MessageError) -> Self {
        Self::write(error)
    }
}

impl From<&Message> for MessageName {
    fn from(message: &Message) -> Self {
        let headers = message.headers();
        Self { id: headers.message_id.clone(), destination: headers.destination.clone() }
    }
}

impl fmt::Display for MessageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.id, &self.destination) {
            (Some(id), Some(destination)) => write!(f, "message {id} from {destination}"),
            (Some(id), None) => write!(f, "message {id}"),
            (None, Some(destination)) => write!(f, "a message from {destination}"),
            (None, None) => f.write_str("a message that was not sent"),
        }
    }
}

/// Boxed, as an error should not make every `Result` large.
fn named(message: &Message) -> Box<MessageName> {
    Box::new(message.into())
}

fn body_kind(body: &Body) -> &'static str {
    match body {
        Body::Empty => "no body",
        Body::Text(None) => "an absent text",
        Body::Text(Some(text)) if text.is_empty() => "an empty text body",
        Body::Text(Some(_)) => "a text body",
        Body::Bytes(_) => "a bytes body",
        Body::Map(_) => "a map body",
        Body::Stream(_) => "a stream body",
        Body::Object(_) => "an object body",
    }
}

fn of(value: &Option<&'static str>) -> String {
    value.map(|name| format!(" of type `{name}`")).unwrap_or_default()
}

fn asked(wanted: &Option<&'static str>) -> String {
    wanted.map(|name| format!(" as `{name}`")).unwrap_or_default()
}

fn at(path: &Option<String>) -> String {
    path.as_ref().map(|path| format!(" at `{path}`")).unwrap_or_default()
}

//! Bodies (OpenWire, section 7).

use std::sync::Arc;

use bytes::Bytes;
use corriere_core::Body;
use corriere_core::message::{BytesBody, MapBody, ObjectBody, StreamBody};

use super::inflate::{inflate, inflate_with_length};
use super::{ConversionError, ConversionLimits, kept, value};
use crate::codec::error::{DecodeError, EncodeError};
use crate::codec::format::WireFormat;
use crate::codec::loose::{Reader, Writer};
use crate::codec::primitive::{Primitive, PrimitiveLimits, PrimitiveMap, encode_map};
use crate::codec::structures::{Message, MessageKind};

/// The body of a message of the wire.
pub(super) fn read(message: &Message, limits: ConversionLimits) -> Result<Body, ConversionError> {
    let content = content(message, limits)?;
    match message.kind {
        MessageKind::Plain => content
            .map_or(Ok(Body::Empty), |content| Err(ConversionError::Unexpected { length: content.len() })),
        MessageKind::Text => {
            let text = content.map(|content| read_text(&content)).transpose();
            text.map(|text| Body::Text(text.flatten())).map_err(ConversionError::Body)
        }
        MessageKind::Bytes => {
            Ok(Body::Bytes(content.map_or_else(BytesBody::default, |content| BytesBody::new(kept(&content)))))
        }
        MessageKind::Object => Ok(Body::Object(
            content.map_or_else(ObjectBody::default, |content| ObjectBody::new(kept(&content))),
        )),
        MessageKind::Map => read_map(content.as_ref(), limits).map(Body::Map),
        MessageKind::Stream => read_stream(content.as_ref(), limits).map(Body::Stream),
        MessageKind::Blob => Err(ConversionError::Blob),
    }
}

/// The kind of a message with this body, and what stands on the wire for it.
pub(super) fn write(body: &Body) -> Result<(MessageKind, Option<Bytes>), EncodeError> {
    Ok(match body {
        Body::Empty => (MessageKind::Plain, None),
        Body::Text(text) => (MessageKind::Text, text.as_deref().map(write_text).transpose()?),
        Body::Bytes(body) => (MessageKind::Bytes, unless_empty(body.as_bytes())),
        Body::Object(body) => (MessageKind::Object, unless_empty(body.as_bytes())),
        Body::Map(body) if body.is_empty() => (MessageKind::Map, None),
        Body::Map(body) => {
            let entries = body.iter().map(|(name, entry)| (name, value::from_core(entry)));
            (MessageKind::Map, Some(encode_map(body.len(), entries)?))
        }
        Body::Stream(body) => {
            let items = Primitive::encode_all(body.iter().map(value::from_core))?;
            (MessageKind::Stream, unless_empty(&items))
        }
    })
}

/// What there is, inflated. A compressed body of no bytes at all is none, as in Java.
fn content(message: &Message, limits: ConversionLimits) -> Result<Option<Bytes>, ConversionError> {
    match &message.content {
        Some(content) if message.compressed && !content.is_empty() => {
            let inflate = if message.kind == MessageKind::Bytes { inflate_with_length } else { inflate };
            inflate(content, limits.memory).map(Some)
        }
        content => Ok(content.clone()),
    }
}

fn read_text(content: &Bytes) -> Result<Option<Arc<str>>, DecodeError> {
    if content.is_empty() {
        return Ok(None);
    }
    let mut reader = Reader::new(content, WireFormat::default());
    let text = match reader.nullable_length(1)? {
        Some(length) => Some(reader.text(length)?),
        None => None,
    };
    reader.finish()?;
    Ok(text)
}

fn write_text(text: &str) -> Result<Bytes, EncodeError> {
    let mut content = Vec::with_capacity(text.len() + 4);
    Writer::new(&mut content, WireFormat::default()).long_text(text)?;
    Ok(content.into())
}

fn read_map(content: Option<&Bytes>, limits: ConversionLimits) -> Result<MapBody, ConversionError> {
    let mut body = MapBody::new();
    let Some(content) = content.filter(|content| !content.is_empty()) else {
        return Ok(body);
    };
    let map = PrimitiveMap::decode(content, PrimitiveLimits::of_memory(limits.memory));
    for (name, entry) in map.map_err(ConversionError::Body)?.unwrap_or_default().0 {
        body.set_unchecked(name, value::to_core(entry).map_err(ConversionError::WriteBody)?);
    }
    Ok(body)
}

fn read_stream(content: Option<&Bytes>, limits: ConversionLimits) -> Result<StreamBody, ConversionError> {
    let mut body = StreamBody::new();
    let Some(content) = content else {
        return Ok(body);
    };
    let items = Primitive::decode_all(content, PrimitiveLimits::of_memory(limits.memory));
    for item in items.map_err(ConversionError::Body)? {
        body.push(value::to_core(item).map_err(ConversionError::WriteBody)?);
    }
    Ok(body)
}

fn unless_empty(bytes: &Bytes) -> Option<Bytes> {
    Some(bytes.clone()).filter(|bytes| !bytes.is_empty())
}

//! Messages of core as messages of the wire.

use std::sync::Arc;

use corriere_core::{Properties, Timestamp, Value};

use super::{ConversionError, GROUP_FIRST, GROUP_ID, GROUP_SEQUENCE, USER_ID, body, value};
use crate::codec::primitive::encode_map;
use crate::codec::structures::{Destination, Message, MessageId};

impl Message {
    /// The message on the wire. [`conversion`](crate::conversion) has the table; the fields that core knows nothing of
    /// are those of [`Message::default`], for the caller to fill in.
    ///
    /// # Errors
    /// [`ConversionError`] for what the wire has no room for.
    pub fn from_core(message: &corriere_core::Message) -> Result<Self, ConversionError> {
        let headers = message.headers();
        let (kind, content) = body::write(message.body()).map_err(ConversionError::WriteBody)?;
        let message_id = headers.message_id.as_ref().map(MessageId::from_core).transpose()?;
        let failed = headers.delivery_count.saturating_sub(1);
        let mut converted = Self {
            kind,
            content,
            producer_id: message_id.as_ref().and_then(|id| id.producer_id.clone()),
            message_id,
            destination: headers.destination.as_ref().map(Destination::from),
            correlation_id: headers.correlation_id.clone(),
            persistent: headers.is_persistent(),
            // Zero would say that it never expires.
            expiration: headers.expiration.map_or(0, |moment| milliseconds(moment).max(1)),
            priority: i8::try_from(headers.priority.level()).unwrap_or(i8::MAX),
            reply_to: headers.reply_to.as_ref().map(Destination::from),
            timestamp: milliseconds(headers.timestamp),
            message_type: headers.message_type.clone(),
            redelivery_counter: i32::try_from(failed).unwrap_or(i32::MAX),
            ..Self::default()
        };
        converted.take_properties(message.properties())?;
        Ok(converted)
    }

    fn take_properties(&mut self, properties: &Properties) -> Result<(), ConversionError> {
        let mut others = Vec::new();
        for (name, property) in properties.iter() {
            match (name, property) {
                (GROUP_ID, Value::String(group)) => self.group_id = Some(Arc::clone(group)),
                (GROUP_SEQUENCE, Value::Int(number)) if *number != 0 => self.group_sequence = *number,
                (USER_ID, Value::String(user)) => self.user_id = Some(Arc::clone(user)),
                (GROUP_FIRST, Value::Boolean(true)) => self.jmsx_group_first_for_consumer = true,
                // A field that has no other way to say zero or false leaves these to the map.
                _ => others.push((name, value::from_core(property))),
            }
        }
        if !others.is_empty() {
            let marshalled = encode_map(others.len(), others).map_err(ConversionError::WriteProperties)?;
            self.marshalled_properties = Some(marshalled);
        }
        Ok(())
    }
}

fn milliseconds(moment: Timestamp) -> i64 {
    i64::try_from(moment.0).unwrap_or(i64::MAX)
}

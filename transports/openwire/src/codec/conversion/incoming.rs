//! Messages of the wire as messages of core.

use corriere_core::message::{Headers, Priority};
use corriere_core::{DeliveryMode, Properties, Timestamp, Value};

use super::{ConversionError, ConversionLimits, GROUP_FIRST, GROUP_ID, GROUP_SEQUENCE, USER_ID, body, value};
use crate::codec::primitive::{PrimitiveLimits, PrimitiveMap};
use crate::codec::structures::{Destination, Message, MessageDispatch, MessageId};

impl Message {
    /// The message in core, as one that was not delivered yet. [`conversion`](crate::conversion) has the table.
    ///
    /// # Errors
    /// [`ConversionError`] for what cannot be read, and for what core has no words for.
    pub fn to_core(&self, limits: ConversionLimits) -> Result<corriere_core::Message, ConversionError> {
        let mut message = corriere_core::Message::new(body::read(self, limits)?);
        *message.headers_mut() = self.headers()?;
        self.add_properties(message.properties_mut_unchecked(), limits)?;
        Ok(message)
    }

    /// The fields that are set and that a message of core has no place for. Whoever converts a message still has them
    /// here.
    #[must_use]
    pub fn beyond_core(&self) -> Vec<&'static str> {
        let id = self.message_id.as_ref();
        let id_producer = id.and_then(|id| id.producer_id.as_ref());
        let another_producer = self.producer_id.is_some() && self.producer_id.as_ref() != id_producer;
        let unread_text_view = id.is_some_and(|id| id.text_view.is_some() && id.text_view_as_id().is_none());
        let fields = [
            ("producer_id", another_producer),
            ("transaction_id", self.transaction_id.is_some()),
            ("original_destination", self.original_destination.is_some()),
            ("message_id.text_view", unread_text_view),
            ("message_id.broker_sequence_id", id.is_some_and(|id| id.broker_sequence_id != 0)),
            ("original_transaction_id", self.original_transaction_id.is_some()),
            ("data_structure", self.data_structure.is_some()),
            ("target_consumer_id", self.target_consumer_id.is_some()),
            ("redelivery_counter", self.redelivery_counter != 0),
            ("broker_path", self.broker_path.is_some()),
            ("arrival", self.arrival != 0),
            ("received_by_df_bridge", self.received_by_df_bridge),
            ("droppable", self.droppable),
            ("cluster", self.cluster.is_some()),
            ("broker_in_time", self.broker_in_time != 0),
            ("broker_out_time", self.broker_out_time != 0),
        ];
        fields.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
    }

    fn headers(&self) -> Result<Headers, ConversionError> {
        let level = u8::try_from(self.priority.clamp(0, 9)).unwrap_or_default();
        Ok(Headers {
            destination: to_core(self.destination.as_ref(), "destination")?,
            delivery_mode: if self.persistent {
                DeliveryMode::Persistent
            } else {
                DeliveryMode::NonPersistent
            },
            priority: Priority::new(level).unwrap_or_default(),
            message_id: self.message_id.as_ref().map(MessageId::to_core).transpose()?,
            timestamp: moment(self.timestamp).unwrap_or_default(),
            expiration: moment(self.expiration),
            correlation_id: self.correlation_id.clone(),
            reply_to: to_core(self.reply_to.as_ref(), "reply_to")?,
            message_type: self.message_type.clone(),
            delivery_count: 0,
        })
    }

    fn add_properties(
        &self,
        properties: &mut Properties,
        limits: ConversionLimits,
    ) -> Result<(), ConversionError> {
        if let Some(marshalled) = self.marshalled_properties.as_ref().filter(|bytes| !bytes.is_empty()) {
            let map = PrimitiveMap::decode(marshalled, PrimitiveLimits::of_memory(limits.memory));
            for (name, property) in map.map_err(ConversionError::Properties)?.unwrap_or_default().0 {
                let property = value::to_core(property).map_err(ConversionError::WriteProperties)?;
                properties.set_unchecked(name, property);
            }
        }
        if let Some(group) = &self.group_id {
            properties.set_unchecked(GROUP_ID, Value::String(group.clone()));
        }
        // Nobody can tell a zero from no number.
        if self.group_sequence != 0 {
            properties.set_unchecked(GROUP_SEQUENCE, Value::Int(self.group_sequence));
        }
        if let Some(user) = &self.user_id {
            properties.set_unchecked(USER_ID, Value::String(user.clone()));
        }
        if self.jmsx_group_first_for_consumer {
            properties.set_unchecked(GROUP_FIRST, Value::Boolean(true));
        }
        Ok(())
    }
}

impl MessageDispatch {
    /// The message as a consumer sees it, with the number of its delivery; `None` at the end of a browser, and when a
    /// pull found none.
    ///
    /// # Errors
    /// As [`Message::to_core`].
    pub fn to_core(
        &self,
        limits: ConversionLimits,
    ) -> Result<Option<corriere_core::Message>, ConversionError> {
        let failed = u32::try_from(self.redelivery_counter).unwrap_or(0);
        let message = self.message.as_ref().map(|message| message.to_core(limits)).transpose()?;
        Ok(message.map(|message| message.received(failed + 1)))
    }
}

fn to_core(
    destination: Option<&Destination>,
    field: &'static str,
) -> Result<Option<corriere_core::Destination>, ConversionError> {
    let destination = destination.map(Destination::to_core).transpose();
    destination.map_err(|error| ConversionError::Destination { field, error })
}

/// A moment that a message has; zero says that there is none.
fn moment(milliseconds: i64) -> Option<Timestamp> {
    u64::try_from(milliseconds).ok().filter(|milliseconds| *milliseconds > 0).map(Timestamp)
}

//! Messages to consumers, and what becomes of them (OpenWire, section 5).

use super::{AckType, ConsumerId, Destination, Message, MessageId, Text, Throwable, TransactionId};
use crate::codec::loose::describe;

describe! {
    /// A consumer without a window asks for a message.
    command 20 MessagePull {
        /// Which one.
        consumer_id: ConsumerId,
        /// What it consumes.
        destination: Option<Destination>,
        /// How long the broker waits for a message, in milliseconds: 0 until there is one, -1 not at all.
        timeout: i64,
        /// Of which message.
        correlation_id: Text,
        /// Which message.
        message_id: Option<MessageId>,
    }

    /// A message goes to a consumer.
    command 21 MessageDispatch {
        /// Which one.
        consumer_id: ConsumerId,
        /// Where the message was sent.
        destination: Option<Destination>,
        /// The message; null at the end of a browser, and when a pull found none.
        message: Option<Box<Message>>,
        /// How many deliveries of it failed before.
        redelivery_counter: i32,
    }

    /// A client says what became of messages.
    command 22 MessageAck {
        /// What the consumer consumes.
        destination: Option<Destination>,
        /// The transaction that it takes effect with.
        transaction_id: Option<TransactionId>,
        /// Whose messages.
        consumer_id: ConsumerId,
        /// What became of them.
        ack_type: AckType,
        /// The first of the range; null for only the last.
        first_message_id: Option<MessageId>,
        /// The last of the range.
        last_message_id: Option<MessageId>,
        /// How many the range holds.
        message_count: i32,
        /// Why it is poison.
        poison_cause: Option<Throwable> [7..],
    }

    /// One broker tells its double what it dispatched.
    command 90 MessageDispatchNotification {
        /// To whom.
        consumer_id: ConsumerId,
        /// From where.
        destination: Option<Destination>,
        /// Counted by the broker.
        delivery_sequence_id: i64,
        /// Which message.
        message_id: Option<MessageId>,
    }
}

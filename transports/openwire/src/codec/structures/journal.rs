//! What old stores of ActiveMQ write with the same encoding (OpenWire, section 5). No peer sends these.

use super::{Destination, MessageAck, MessageId, Text, TransactionId};
use crate::codec::loose::describe;

describe! {
    /// A durable subscription has got a message.
    structure 50 JournalTopicAck {
        /// The topic.
        destination: Option<Destination>,
        /// Which message.
        message_id: Option<MessageId>,
        /// Its number in the store.
        message_sequence_id: i64,
        /// The name of the subscription.
        subscription_name: Text,
        /// Whose it is.
        client_id: Text,
        /// The transaction that it takes effect with.
        transaction_id: Option<TransactionId>,
    }

    /// A message of a queue was settled.
    structure 52 JournalQueueAck {
        /// The queue.
        destination: Option<Destination>,
        /// By what.
        message_ack: Option<MessageAck>,
    }

    /// A remark.
    structure 53 JournalTrace {
        /// The remark.
        message: Text,
    }

    /// Something happened to a transaction.
    structure 54 JournalTransaction {
        /// Which one.
        transaction_id: Option<TransactionId>,
        /// What.
        operation: i8,
        /// Whether it was prepared before.
        was_prepared: bool,
    }
}

//! What a client opens and closes: connections, sessions, producers, destinations (OpenWire, section 5).

use corriere_core::provider::Password;

use super::{BrokerId, ConnectionId, Destination, DestinationOperation, ProducerId, SessionId, Text};
use crate::codec::loose::describe;
use crate::codec::structure::Structure;

describe! {
    /// A client comes.
    command 3 ConnectionInfo {
        /// Chosen by the client.
        connection_id: ConnectionId,
        /// Under which durable subscriptions are kept.
        client_id: Text,
        /// The user's.
        password: Option<Password>,
        /// The user.
        user_name: Text,
        /// Which brokers it passed.
        broker_path: Option<Vec<BrokerId>>,
        /// Whether it is a broker that stands by.
        broker_master_connector: bool,
        /// Whether it takes [`ConnectionControl`](super::ConnectionControl).
        manageable: bool,
        /// Whether it talks to one broker only.
        client_master: bool,
        /// Whether it reconnects by itself.
        fault_tolerant: bool [6..],
        /// Whether it has reconnected.
        failover_reconnect: bool [6..],
        /// Its address, filled in by the broker.
        client_ip: Text [8..],
    }

    /// A client opens a session.
    command 4 SessionInfo {
        /// Chosen by the client.
        session_id: SessionId,
    }

    /// A client opens a producer.
    command 6 ProducerInfo {
        /// Chosen by the client.
        producer_id: ProducerId,
        /// Where it sends; null when each message says so.
        destination: Option<Destination>,
        /// Which brokers it passed.
        broker_path: Option<Vec<BrokerId>>,
        /// Whether what it sends may be dispatched by another thread.
        dispatch_async: bool,
        /// How many bytes it sends before it waits for a [`ProducerAck`](super::ProducerAck); 0 for no window.
        window_size: i32,
    }

    /// A client makes or removes a temporary destination, or a broker tells of it.
    command 8 DestinationInfo {
        /// The owner's.
        connection_id: Option<ConnectionId>,
        /// Which one.
        destination: Option<Destination>,
        /// What happens to it.
        operation_type: DestinationOperation,
        /// How long that may take, in milliseconds.
        timeout: i64,
        /// Which brokers it passed.
        broker_path: Option<Vec<BrokerId>>,
    }

    /// A client removes a durable subscription.
    command 9 RemoveSubscriptionInfo {
        /// The connection that asks.
        connection_id: Option<ConnectionId>,
        /// The name of the subscription.
        subscription_name: Text,
        /// Whose it is.
        client_id: Text,
    }

    /// A client closes a connection, a session, a consumer or a producer: whichever the id names.
    command 12 RemoveInfo {
        /// A [`ConnectionId`], [`SessionId`], [`ConsumerId`](super::ConsumerId) or [`ProducerId`].
        object_id: Option<Structure>,
        /// The broker's number of the last message that was handed to the application; -2 when that is not known, -1 when
        /// there is none.
        last_delivered_sequence_id: i64 [5..],
    }
}

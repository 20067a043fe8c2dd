//! Consumers and durable subscriptions (OpenWire, section 5).

use super::{BrokerId, ConsumerId, Destination, Text};
use crate::codec::loose::describe;
use crate::codec::structure::Structure;

describe! {
    /// A client opens a consumer.
    command 5 ConsumerInfo {
        /// Chosen by the client.
        consumer_id: ConsumerId,
        /// Whether it only looks.
        browser: bool,
        /// What it consumes; the name may be of several destinations.
        destination: Option<Destination>,
        /// How many messages may be under way to it; 0 when it pulls.
        prefetch_size: i32,
        /// How many may wait for it beyond that (topics).
        maximum_pending_message_limit: i32,
        /// Whether it is dispatched to by another thread.
        dispatch_async: bool,
        /// Which messages.
        selector: Text,
        /// Whose durable subscription it is.
        client_id: Text [10..],
        /// The name of the durable subscription.
        subscription_name: Text,
        /// Whether it leaves out what its own connection sends.
        no_local: bool,
        /// Whether it wants the queue for itself.
        exclusive: bool,
        /// Whether it wants what was sent before it came (topics).
        retroactive: bool,
        /// Those of higher priority are served first.
        priority: i8,
        /// Which brokers it passed.
        broker_path: Option<Vec<BrokerId>>,
        /// A condition that a network of brokers adds, a [`NetworkBridgeFilter`](super::NetworkBridgeFilter).
        additional_predicate: Option<Structure>,
        /// Whether it is another broker's.
        network_subscription: bool,
        /// Whether it acknowledges seldom.
        optimized_acknowledge: bool,
        /// Whether it acknowledges each message by itself.
        no_range_acks: bool,
        /// Which consumers of other brokers it stands for.
        network_consumer_path: Option<Vec<ConsumerId>> [4..],
    }

    /// A durable subscription, as a store keeps it.
    structure 55 SubscriptionInfo {
        /// Whose it is.
        client_id: Text,
        /// The topic that it is kept under.
        destination: Option<Destination>,
        /// Which messages.
        selector: Text,
        /// Its name.
        subscription_name: Text,
        /// The topics that were asked for, where they are several.
        subscribed_destination: Option<Destination>,
        /// Whether it leaves out what its own connection sends.
        no_local: bool [11..],
    }
}

//! What brokers say of themselves and to each other (OpenWire, section 5).

use super::{BrokerId, ConsumerInfo, Text};
use crate::codec::loose::describe;

describe! {
    /// A broker introduces itself, unasked, behind the wire format.
    command 2 BrokerInfo {
        /// Its identity.
        broker_id: Option<BrokerId>,
        /// Its address.
        broker_url: Text,
        /// Others that it knows.
        peer_broker_infos: Option<Vec<BrokerInfo>>,
        /// Its name.
        broker_name: Text,
        /// Whether it is the double of another.
        slave_broker: bool,
        /// Whether it has a double.
        master_broker: bool,
        /// Whether it can be failed over from.
        fault_tolerant_configuration: bool,
        /// Whether messages go both ways over this network connection.
        duplex_connection: bool,
        /// Whether this is a network connection.
        network_connection: bool,
        /// The number of the connection at the broker.
        connection_id: i64,
        /// Where large bodies may be put.
        broker_upload_url: Text [3..],
        /// How the network connection is configured.
        network_properties: Text [3..],
    }

    /// Something was found.
    structure 40 DiscoveryEvent {
        /// Its address.
        service_name: Text,
        /// Its name.
        broker_name: Text,
    }

    /// How far messages and consumers are passed on in a network of brokers.
    structure 91 NetworkBridgeFilter {
        /// Over how many brokers; one number for both, first, in old versions.
        network_ttl: i32 [..10],
        /// Whose bridge.
        network_broker_id: Option<BrokerId>,
        /// Over how many brokers messages go.
        message_ttl: i32 [10..],
        /// Over how many brokers consumers are told of.
        consumer_ttl: i32 [10..],
    }

    /// The durable subscriptions of a broker, for another one in its network.
    command 92 BrokerSubscriptionInfo [12..] {
        /// Whose.
        broker_id: Option<BrokerId>,
        /// Its name.
        broker_name: Text,
        /// The subscriptions.
        subscription_infos: Option<Vec<ConsumerInfo>>,
    }
}

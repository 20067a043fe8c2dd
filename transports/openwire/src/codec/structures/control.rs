//! What the two ends say about the connection itself (OpenWire, section 5).

use bytes::Bytes;

use super::{ConnectionId, ConsumerId, Destination, ProducerId, Text, Throwable};
use crate::codec::loose::describe;

describe! {
    /// Something is written, so that the peer reads something.
    command 10 KeepAliveInfo {}

    /// The sender closes the connection.
    command 11 ShutdownInfo {}

    /// A word to the peer's process, such as `shutdown`. Nobody should obey.
    command 14 ControlCommand {
        /// The word.
        command: Text,
    }

    /// Asks for what is buffered.
    command 15 FlushCommand {}

    /// Something failed that nobody waits for.
    command 16 ConnectionError {
        /// What.
        exception: Option<Throwable>,
        /// On which connection.
        connection_id: Option<ConnectionId>,
    }

    /// A consumer is to be closed, stopped, started, or given another window.
    command 17 ConsumerControl {
        /// What it consumes.
        destination: Option<Destination> [6..],
        /// Whether it is to be closed.
        close: bool,
        /// Which one.
        consumer_id: Option<ConsumerId>,
        /// Its new window.
        prefetch: i32,
        /// Whether what it has not handed over is to go back.
        flush: bool,
        /// Whether it is to start.
        start: bool,
        /// Whether it is to stop.
        stop: bool,
    }

    /// A connection is to be closed, held, or moved to another broker.
    command 18 ConnectionControl {
        /// Whether it is to be closed.
        close: bool,
        /// Whether the process is to exit. Nobody should obey.
        exit: bool,
        /// Whether the broker can be failed over from.
        fault_tolerant: bool,
        /// Whether to go on.
        resume: bool,
        /// Whether to hold.
        suspend: bool,
        /// Addresses of the cluster.
        connected_brokers: Text [6..],
        /// Where to go instead.
        reconnect_to: Text [6..],
        /// Whether to spread over the cluster.
        rebalance_connection: bool [6..],
        /// Opaque.
        token: Option<Bytes> [8..],
    }

    /// The broker has taken in what a producer with a window has sent.
    command 19 ProducerAck {
        /// Which one.
        producer_id: ProducerId,
        /// How many bytes.
        size: i32,
    }

    /// Asks for datagrams again; not used over a stream.
    command 65 ReplayCommand {
        /// The first that is missing.
        first_nak_number: i32,
        /// The last that is missing.
        last_nak_number: i32,
    }

    /// A part of a command in datagrams; not used over a stream.
    structure 60 PartialCommand {
        /// Which command.
        command_id: i32,
        /// The part.
        data: Option<Bytes>,
    }

    /// The last part of a command in datagrams; not used over a stream.
    structure 61 LastPartialCommand {
        /// Which command.
        command_id: i32,
        /// The part.
        data: Option<Bytes>,
    }
}

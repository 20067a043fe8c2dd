//! What a provider tells a connection by itself.

use std::sync::Arc;

use super::ProviderError;
use crate::destination::Destination;
use crate::id::SubscriptionId;
use crate::message::Message;

/// A message on its way to a consumer.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// For whom.
    pub subscription: SubscriptionId,
    /// Counted per subscription from 1, in the order of dispatch; a message that comes again has a new number.
    pub number: u64,
    /// How many deliveries of the subscription were given back in blocking mode before this one was dispatched. What
    /// carries another epoch than the consumer's own was taken back meanwhile and is to be dropped.
    pub epoch: u32,
    /// The message, shared by all who got it.
    pub message: Arc<Message>,
    /// 1 at the first delivery.
    pub delivery_count: u32,
    /// To be given back when it is handed over.
    pub mark: Option<Mark>,
}

/// By what a provider knows a delivery again when it is handed over ([`Command::HandedOver`](super::Command::HandedOver)). It
/// means nothing to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Where the provider notes what the consumer has in its hands.
    pub slot: u32,
    /// The message, as the provider names it.
    pub message: u64,
    /// The number of the delivery.
    pub delivery: u32,
}

/// Something that happened to a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The connection is gone; nothing more comes.
    Lost {
        /// Why.
        error: ProviderError,
    },
    /// A subscription was ended by the provider.
    SubscriptionEnded {
        /// Which one.
        subscription: SubscriptionId,
        /// Why.
        error: ProviderError,
    },
    /// A browser has shown all that was there when it was opened.
    BrowseEnded {
        /// Which one.
        subscription: SubscriptionId,
    },
    /// The broker has given a subscription another window than it asked for: by its policy, or as somebody changed that.
    WindowChanged {
        /// Which one.
        subscription: SubscriptionId,
        /// How many messages may be sent ahead from now on.
        prefetch: u32,
    },
    /// A consumer stands still by its own doing: all that its window lets through was handed to the application, which has
    /// acknowledged none of it, and more waits. Told once, until it has had room again.
    SlowConsumer {
        /// Which one.
        subscription: SubscriptionId,
        /// What it consumes.
        destination: Destination,
        /// How many messages the application has not acknowledged.
        unacknowledged: u64,
    },
    /// A temporary destination came or went.
    DestinationChanged {
        /// Which one.
        destination: Destination,
        /// Whether it is there now.
        exists: bool,
    },
}

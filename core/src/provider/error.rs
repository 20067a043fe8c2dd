//! Why a provider refuses.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use super::Capability;
use crate::text::shown;

/// A destination whose messages use memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryHolder {
    /// Which one.
    pub destination: String,
    /// Bytes of its messages, those of open transactions included.
    pub bytes: u64,
}

/// Why a provider could not do what a command asked.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderError {
    /// The provider cannot do this at all, or not yet.
    #[error("this provider does not offer {0}")]
    Unsupported(Capability),
    /// The connection is closed or its peer is gone.
    #[error("the connection to the broker is gone")]
    Lost,
    /// The broker has stopped.
    #[error("broker `{broker}` has stopped: {reason}")]
    Stopped {
        /// Its name.
        broker: String,
        /// Why it did.
        reason: String,
    },
    /// The address is none that the provider could look for a broker at.
    #[error("`{url}` is no address of a broker; expected `{expected}`")]
    Address {
        /// The address.
        url: String,
        /// The form that it should have.
        expected: &'static str,
    },
    /// Nobody listens at the address.
    #[error("no broker answers at `{url}`: {reason}")]
    Unreachable {
        /// The address.
        url: String,
        /// What stood in the way, and what is there instead.
        reason: String,
    },
    /// The command names a session, producer, subscription or transaction that is not there.
    #[error("there is no {what} on this connection")]
    Unknown {
        /// Kind and number.
        what: String,
    },
    /// The command names something new by a number that is taken.
    #[error("{what} exists already on this connection")]
    Exists {
        /// Kind and number.
        what: String,
    },
    /// A message was sent again, and what becomes of the first is not known yet.
    #[error(
        "whether message {message_id} is stored is not known yet: a transaction that sends it is being committed, or is prepared; send it again later"
    )]
    InDoubt {
        /// Which one.
        message_id: String,
    },
    /// The destination cannot be used for this.
    #[error("{destination} cannot be used: {reason}")]
    InvalidDestination {
        /// Which one.
        destination: String,
        /// Why.
        reason: String,
    },
    /// The client id is in use.
    #[error("client id `{}` is in use by {holder}", shown(client_id))]
    ClientIdInUse {
        /// The id.
        client_id: String,
        /// The connection that has it.
        holder: String,
    },
    /// A durable subscription was asked for over a connection without a client id.
    #[error(
        "durable subscription `{}` needs a client id; set it as the option `jms.clientID` of the connection factory's URL",
        shown(name)
    )]
    NoClientId {
        /// The subscription.
        name: String,
    },
    /// There is no such durable subscription.
    #[error(
        "there is no durable subscription `{}` of client `{}`{}",
        shown(name), shown(client_id), Nearest(nearest.as_deref())
    )]
    UnknownSubscription {
        /// Its name.
        name: String,
        /// Whose it would be.
        client_id: String,
        /// One of a similar name that is there.
        nearest: Option<String>,
    },
    /// A durable subscription is in use, so that it can neither be consumed from by another nor removed.
    #[error("durable subscription `{}` of client `{}` is in use by {holder}", shown(name), shown(client_id))]
    SubscriptionInUse {
        /// Its name.
        name: String,
        /// Whose it is.
        client_id: String,
        /// What uses it: a consumer, or a transaction that is open.
        holder: String,
    },
    /// Memory stayed full until the send's deadline.
    #[error(
        "the send of {message_id} to {destination} {}: the broker's limit of {limit} bytes leaves no room for it{}",
        Waited(*waited), Holders(holders)
    )]
    MemoryFull {
        /// The message.
        message_id: String,
        /// Where it was to go.
        destination: String,
        /// How long it waited.
        waited: Duration,
        /// The limit in bytes.
        limit: u64,
        /// Which destinations use most of it, largest first; up to three.
        holders: Vec<MemoryHolder>,
    },
    /// The store had no room for a message until the send's deadline.
    #[error("the send of {message_id} to {destination} {}: {reason}", WaitedForStore(*waited))]
    StoreFull {
        /// The message.
        message_id: String,
        /// Where it was to go.
        destination: String,
        /// How long it waited.
        waited: Duration,
        /// What is full, as the store says it.
        reason: String,
    },
    /// A broker behind a wire had no room for a message, of whatever kind.
    #[error("the broker has no room for {message_id} to {destination}: {reason}")]
    NoRoom {
        /// The message.
        message_id: String,
        /// Where it was to go.
        destination: String,
        /// What is full, as the broker says it.
        reason: String,
    },
    /// A broker behind a wire refuses, for a reason that has no variant of its own here.
    #[error("the broker refuses it: {reason} ({exception})")]
    Refused {
        /// The class of the refusal, as the wire names it.
        exception: String,
        /// Why, as the broker says it.
        reason: String,
    },
    /// The transaction could not be committed and was rolled back.
    #[error("transaction {transaction} was rolled back: {reason}")]
    RolledBack {
        /// Which one.
        transaction: String,
        /// What failed in it.
        reason: String,
    },
    /// The second phase of a commit without the first.
    #[error("transaction {transaction} cannot be committed in two phases: no prepare went before the commit")]
    NotPrepared {
        /// Which one.
        transaction: String,
    },
    /// The store failed.
    #[error("the message store failed: {reason}")]
    Store {
        /// What failed.
        reason: String,
    },
}

impl ProviderError {
    /// Whether there is no connection any more, so that nothing on it is left to be closed.
    #[must_use]
    pub fn ends_connection(&self) -> bool {
        matches!(self, Self::Lost | Self::Stopped { .. })
    }

    /// Whether there was no room for what was sent. That says nothing about a message whose handler failed for it.
    #[must_use]
    pub fn lacks_room(&self) -> bool {
        matches!(self, Self::MemoryFull { .. } | Self::StoreFull { .. } | Self::NoRoom { .. })
    }
}

/// How long a send waited, in words.
struct Waited(Duration);

impl fmt::Display for Waited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_zero() {
            f.write_str("found no memory and was not to wait for it")
        } else {
            write!(f, "waited {:?} for memory", self.0)
        }
    }
}

/// How long a send waited for the store, in words.
struct WaitedForStore(Duration);

impl fmt::Display for WaitedForStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_zero() {
            f.write_str("found no room in the store")
        } else {
            write!(f, "waited {:?} for room in the store", self.0)
        }
    }
}

/// A name that may have been meant, in words.
struct Nearest<'a>(Option<&'a str>);

impl fmt::Display for Nearest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |name| write!(f, "; did you mean `{}`?", shown(name)))
    }
}

/// Who uses the memory, in words.
struct Holders<'a>(&'a [MemoryHolder]);

impl fmt::Display for Holders<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, MemoryHolder { destination, bytes }) in self.0.iter().enumerate() {
            let before = if index == 0 { "; most is used by " } else { ", " };
            write!(f, "{before}{destination} ({bytes} bytes)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(waited: Duration, holders: Vec<MemoryHolder>) -> String {
        let (message_id, destination) = ("ID:p:1".to_owned(), "queue://orders".to_owned());
        ProviderError::MemoryFull { message_id, destination, waited, limit: 1_000, holders }.to_string()
    }

    #[test]
    fn full_memory_names_who_fills_it() {
        let holder = |destination: &str, bytes| MemoryHolder { destination: destination.to_owned(), bytes };
        let holders = vec![holder("queue://DLQ.orders", 800), holder("queue://orders", 150)];
        assert_eq!(
            full(Duration::from_secs(5), holders),
            "the send of ID:p:1 to queue://orders waited 5s for memory: the broker's limit of 1000 bytes leaves no room for \
             it; most is used by queue://DLQ.orders (800 bytes), queue://orders (150 bytes)"
        );
    }

    #[test]
    fn a_full_store_says_what_is_full() {
        let full = |waited| {
            let (message_id, destination) = ("ID:p:1".to_owned(), "queue://orders".to_owned());
            let reason = "40 of 40 segments are in use".to_owned();
            ProviderError::StoreFull { message_id, destination, waited, reason }.to_string()
        };
        assert_eq!(
            full(Duration::from_secs(2)),
            "the send of ID:p:1 to queue://orders waited 2s for room in the store: 40 of 40 segments are in use"
        );
        assert_eq!(
            full(Duration::ZERO),
            "the send of ID:p:1 to queue://orders found no room in the store: 40 of 40 segments are in use"
        );
    }

    #[test]
    fn a_send_that_did_not_wait_does_not_say_that_it_did() {
        assert_eq!(
            full(Duration::ZERO, Vec::new()),
            "the send of ID:p:1 to queue://orders found no memory and was not to wait for it: the broker's limit of 1000 \
             bytes leaves no room for it"
        );
    }
}

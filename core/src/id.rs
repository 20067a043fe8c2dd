//! Names of connections, sessions, producers, subscriptions, messages and transactions.

use std::fmt;
use std::process;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use thiserror::Error;

use crate::text::shown;

/// The identity of a connection, unique over machines and restarts: `ID:<process>-<start>-<number>`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(Arc<str>);

impl ConnectionId {
    /// An identity that no other connection has, in ActiveMQ's shape.
    #[must_use]
    pub fn unique() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        static START: std::sync::OnceLock<u128> = std::sync::OnceLock::new();
        let start = START.get_or_init(|| {
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since_epoch| since_epoch.as_nanos())
        });
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self(format!("ID:{}-{start:x}-{number}", process::id()).into())
    }

    /// An identity that a peer has chosen.
    #[must_use]
    pub fn foreign(text: &str) -> Self {
        Self(text.into())
    }

    /// The identity as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! number_within_a_connection {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    )*};
}

number_within_a_connection! {
    /// The number of a session within its connection.
    SessionId;
    /// The number of a producer within its connection.
    ProducerId;
    /// The number of a subscription (a consumer, as the provider sees it) within its connection.
    SubscriptionId;
}

/// The name of a message: the identity of its producer and the number that the producer gave it.
///
/// As text it is `ID:<process>-<start>-<connection>:<session>:<producer>:<sequence>`, ActiveMQ's shape; anything between
/// `ID:` and the last colon is the producer's.
///
/// ```
/// # use corriere_core::MessageId;
/// # fn main() -> Result<(), corriere_core::id::MessageIdError> {
/// let id: MessageId = "ID:4711-18c2-1:1:1:42".parse()?;
/// assert_eq!((&*id.producer, id.sequence), ("ID:4711-18c2-1:1:1", 42));
/// assert_eq!(id.to_string(), "ID:4711-18c2-1:1:1:42");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId {
    /// The producer's identity, unique over machines and restarts.
    pub producer: Arc<str>,
    /// Counted by the producer from 1.
    pub sequence: u64,
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.producer, self.sequence)
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for MessageId {
    type Err = MessageIdError;

    fn from_str(text: &str) -> Result<Self, MessageIdError> {
        let parts = text.rsplit_once(':').and_then(|(producer, sequence)| {
            producer.strip_prefix("ID:").filter(|rest| !rest.is_empty())?;
            // What is written in another way than Display's would come back as another text.
            let number = sequence.parse::<u64>().ok().filter(|number| number.to_string() == sequence)?;
            Some(Self { producer: producer.into(), sequence: number })
        });
        parts.ok_or_else(|| MessageIdError { text: shown(text) })
    }
}

/// The text is no message id.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{text}` is not a message id; expected `ID:`, the producer's identity, a colon and a number")]
#[non_exhaustive]
pub struct MessageIdError {
    /// The text, cut where it is long.
    pub text: String,
}

/// A branch of a distributed transaction, named by its transaction manager (X/Open XA, section 4.2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Xid {
    /// Which scheme the two other parts follow.
    pub format: i32,
    /// The global transaction, at most 64 bytes.
    pub global: Bytes,
    /// The branch within it, at most 64 bytes.
    pub branch: Bytes,
}

/// A transaction: local to one connection, or a branch of a distributed one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransactionId {
    /// Counted by the connection.
    Local(u64),
    /// Named by a transaction manager; survives its connection once prepared.
    Distributed(Xid),
}

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(number) => write!(f, "TX:{number}"),
            Self::Distributed(xid) => {
                write!(f, "XID:{}:", xid.format)?;
                xid.global.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str(":")?;
                xid.branch.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_id_comes_back_from_its_text() {
        for text in ["ID:1-18c2-1:1:1:42", "ID:host-33-1:-1:1:1:0", "ID:a:18446744073709551615", "ID:名:1"] {
            let id: MessageId = text.parse().unwrap();
            assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn a_text_that_would_come_back_changed_is_no_message_id() {
        for text in ["", "ID:", "ID::1", "ID:a", "ID:a:", "ID:a:007", "ID:a:+1", "ID:a:-1", "a:1", "id:a:1"] {
            assert!(text.parse::<MessageId>().is_err(), "`{text}`");
        }
        assert!("ID:a:18446744073709551616".parse::<MessageId>().is_err());
        assert_eq!(
            "order 7".parse::<MessageId>().unwrap_err().to_string(),
            "`order 7` is not a message id; expected `ID:`, the producer's identity, a colon and a number"
        );
    }

    #[test]
    fn no_two_connections_have_the_same_identity() {
        assert_ne!(ConnectionId::unique(), ConnectionId::unique());
    }
}

//! Names of connections, sessions, producers, subscriptions, messages and transactions.

use std::fmt;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;

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
/// Shown as `ID:<process>-<start>-<connection>:<session>:<producer>:<sequence>`, ActiveMQ's shape.
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

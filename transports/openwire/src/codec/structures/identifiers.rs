//! Identifiers, on the wire and as text (OpenWire, sections 5 and 8).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

use super::Text;
use crate::codec::loose::describe;

describe! {
    /// A connection: `ID:<host>-<port>-<milliseconds>-<n>:<m>`.
    #[derive(Hash)]
    structure 120 ConnectionId {
        /// The whole of it.
        value: Arc<str>,
    }

    /// A session of a connection: `<connection>:<session>`. Session -1 is there without having been opened.
    #[derive(Hash)]
    structure 121 SessionId {
        /// The connection's value.
        connection_id: Arc<str>,
        /// Counted by the connection.
        value: i64,
    }

    /// A consumer of a session: `<connection>:<session>:<consumer>`.
    #[derive(Hash)]
    structure 122 ConsumerId {
        /// The connection's value.
        connection_id: Arc<str>,
        /// The session's number.
        session_id: i64,
        /// Counted by the session.
        value: i64,
    }

    /// A producer of a session: `<connection>:<session>:<producer>`. On the wire its own number stands first.
    #[derive(Hash)]
    structure 123 ProducerId {
        /// The connection's value.
        connection_id: Arc<str>,
        /// Counted by the session.
        value: i64,
        /// The session's number.
        session_id: i64,
    }

    /// A broker.
    #[derive(Hash)]
    structure 124 BrokerId {
        /// The whole of it.
        value: Arc<str>,
    }

    /// A message: `<producer>:<sequence>`. The broker's number is no part of its identity.
    #[derive(Hash)]
    structure 110 MessageId {
        /// What a client shows instead, where the message is no JMS provider's; null normally.
        text_view: Text [10..],
        /// Who sent it.
        producer_id: Option<ProducerId>,
        /// Counted by the producer.
        producer_sequence_id: i64,
        /// Counted by the broker, for its own use.
        broker_sequence_id: i64,
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.value)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.connection_id, self.value)
    }
}

impl fmt::Display for ConsumerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.connection_id, self.session_id, self.value)
    }
}

impl fmt::Display for ProducerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.connection_id, self.session_id, self.value)
    }
}

impl fmt::Display for BrokerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.value)
    }
}

impl fmt::Display for MessageId {
    /// What Java shows as `JMSMessageID`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.text_view, &self.producer_id) {
            (Some(text), _) if text.starts_with("ID:") => f.write_str(text),
            (Some(text), _) => write!(f, "ID:{text}"),
            (None, Some(producer)) => write!(f, "{producer}:{}", self.producer_sequence_id),
            (None, None) => write!(f, "null:{}", self.producer_sequence_id),
        }
    }
}

impl FromStr for ProducerId {
    type Err = IdentifierError;

    /// Only what its `Display` writes is taken, so that it comes back unchanged.
    fn from_str(text: &str) -> Result<Self, IdentifierError> {
        let parts = text.rsplit_once(':').and_then(|(rest, value)| {
            let (connection, session) = rest.rsplit_once(':')?;
            Some(Self {
                connection_id: connection.into(),
                value: number(value)?,
                session_id: number(session)?,
            })
        });
        parts.ok_or(IdentifierError { expected: "a connection, a colon, a session, a colon and a producer" })
    }
}

impl FromStr for MessageId {
    type Err = IdentifierError;

    /// Only what its `Display` writes without a text view is taken, so that it comes back unchanged.
    fn from_str(text: &str) -> Result<Self, IdentifierError> {
        let parts = text.rsplit_once(':').and_then(|(producer, sequence)| {
            let producer_sequence_id = number(sequence)?;
            Some(Self { producer_id: Some(producer.parse().ok()?), producer_sequence_id, ..Self::default() })
        });
        parts.ok_or(IdentifierError { expected: "a producer, a colon and a number" })
    }
}

/// The number, unless it is written in another way than it would be shown.
fn number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    // `+7`, `007` and `-0`.
    let is_shown_so = text == "0" || !digits.starts_with(['+', '0']);
    text.parse().ok().filter(|_| is_shown_so)
}

/// A text is no identifier.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the text is no identifier; expected {expected}")]
#[non_exhaustive]
pub struct IdentifierError {
    /// What it should be made of.
    pub expected: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_read_as_java_writes_them() {
        let producer: ProducerId = "ID:host-40123-1700000000000-1:1:-1:3".parse().unwrap();
        assert_eq!(&*producer.connection_id, "ID:host-40123-1700000000000-1:1");
        assert_eq!((producer.session_id, producer.value), (-1, 3));
        let producer: ProducerId = "a:-9223372036854775808:0".parse().unwrap();
        assert_eq!((producer.session_id, producer.value), (i64::MIN, 0));
        let id: MessageId = "ID:host-1:1:1:1:42".parse().unwrap();
        assert_eq!((id.producer_sequence_id, id.to_string()), (42, "ID:host-1:1:1:1:42".to_owned()));
        let foreign = MessageId { text_view: Some("amqp-7".into()), ..id };
        assert_eq!(foreign.to_string(), "ID:amqp-7");
    }

    #[test]
    fn what_would_come_back_changed_is_no_identifier() {
        for text in [
            "",
            "a",
            "a:1",
            "a:1:",
            "a::1",
            "a:01:1",
            "a:1:+1",
            "a:1:-01",
            "a:-0:1",
            "a:1:9223372036854775808",
        ] {
            assert!(text.parse::<ProducerId>().is_err(), "`{text}`");
        }
        for text in ["a:1:1", "a:1:1:", "a:1:1:x", ""] {
            assert!(text.parse::<MessageId>().is_err(), "`{text}`");
        }
    }
}

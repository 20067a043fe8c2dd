//! Where messages are sent: queues and topics, by their physical names.

mod options;

pub use options::MAXIMUM_PREFETCH;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

use self::options::Options;
use crate::text::shown;

/// Whether one consumer takes a message or every subscription gets its copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DestinationKind {
    /// Each message goes to one consumer.
    Queue,
    /// Each message goes to every subscription.
    Topic,
    /// A queue that belongs to the connection that made it.
    TemporaryQueue,
    /// A topic that belongs to the connection that made it.
    TemporaryTopic,
}

impl DestinationKind {
    const ALL: [Self; 4] = [Self::Queue, Self::Topic, Self::TemporaryQueue, Self::TemporaryTopic];

    /// What stands before `://`: `queue`, `topic`, `temp-queue` or `temp-topic`.
    #[must_use]
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Topic => "topic",
            Self::TemporaryQueue => "temp-queue",
            Self::TemporaryTopic => "temp-topic",
        }
    }

    /// The kind that `text` begins with, as in `topic://prices`, and what stands behind it; `None` where it names none.
    #[must_use]
    pub fn split(text: &str) -> Option<(Self, &str)> {
        let mut kinds = Self::ALL.into_iter();
        kinds.find_map(|kind| Some((kind, text.strip_prefix(kind.scheme())?.strip_prefix("://")?)))
    }

    /// Whether it belongs to a connection and ends with it.
    #[must_use]
    pub fn is_temporary(self) -> bool {
        matches!(self, Self::TemporaryQueue | Self::TemporaryTopic)
    }
}

/// A queue or a topic, with the options that stood behind its name.
///
/// As text it is `queue://orders`, `topic://prices`, or the name alone, which is a queue. Two are the same when kind and
/// name are, whatever their options.
///
/// A name works unchanged or is refused. It may hold anything but control characters, has at most
/// [`Destination::MAXIMUM_NAME_BYTES`] bytes, is compared byte by byte, and neither begins nor ends with white space.
/// Refused as well is what other brokers give a meaning that Corriere does not know yet: a comma (several destinations
/// in one), `*` or `>` between dots (wildcards), and `://` within the name.
///
/// ```
/// # use corriere_core::{Destination, DestinationKind};
/// # fn main() -> Result<(), corriere_core::DestinationError> {
/// let orders: Destination = "queue://orders?consumer.prefetchSize=10".parse()?;
/// assert_eq!(orders, Destination::queue("orders")?);
/// assert_eq!(orders.consumer_prefetch(), Some(10));
/// assert_eq!(orders.to_string(), "queue://orders");
/// assert!(Destination::parse("prices", DestinationKind::Topic)?.is_topic());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Destination {
    kind: DestinationKind,
    name: Arc<str>,
    options: Options,
}

impl Destination {
    /// How long a name may be, as UTF-8. The prefix of a dead letter queue (`DLQ.`, `DLQ.topic.`) is not counted, so
    /// that every destination can have one.
    pub const MAXIMUM_NAME_BYTES: usize = 1_024;

    /// The queue of this name; `name` may carry options: `orders?consumer.prefetchSize=10`.
    ///
    /// # Errors
    /// See [`DestinationError`].
    pub fn queue(name: &str) -> Result<Self, DestinationError> {
        Self::new(DestinationKind::Queue, name)
    }

    /// The topic of this name; `name` may carry options.
    ///
    /// # Errors
    /// See [`DestinationError`].
    pub fn topic(name: &str) -> Result<Self, DestinationError> {
        Self::new(DestinationKind::Topic, name)
    }

    /// The temporary queue, or topic, of this name. For providers, which make the name; a client asks its session.
    ///
    /// # Errors
    /// See [`DestinationError`].
    pub fn temporary(kind: DestinationKind, name: &str) -> Result<Self, DestinationError> {
        let kind = match kind {
            DestinationKind::Queue | DestinationKind::TemporaryQueue => DestinationKind::TemporaryQueue,
            DestinationKind::Topic | DestinationKind::TemporaryTopic => DestinationKind::TemporaryTopic,
        };
        Self::new(kind, name)
    }

    /// The destination that `text` names with its kind (`queue://`, `topic://`, `temp-queue://`, `temp-topic://`), or
    /// that of kind `default` where `text` is a name alone.
    ///
    /// # Errors
    /// See [`DestinationError`].
    pub fn parse(text: &str, default: DestinationKind) -> Result<Self, DestinationError> {
        let (kind, name) = DestinationKind::split(text).unwrap_or((default, text));
        Self::new(kind, name)
    }

    fn new(kind: DestinationKind, text: &str) -> Result<Self, DestinationError> {
        let (name, options) =
            text.split_once('?').map_or((text, None), |(name, options)| (name, Some(options)));
        check_name(name)?;
        let options = options.map_or(Ok(Options::default()), |options| Options::parse(name, options))?;
        Ok(Self { kind, name: name.into(), options })
    }

    /// Whether it is a queue or a topic, lasting or temporary.
    #[must_use]
    pub fn kind(&self) -> DestinationKind {
        self.kind
    }

    /// Whether this is a topic, lasting or temporary.
    #[must_use]
    pub fn is_topic(&self) -> bool {
        matches!(self.kind, DestinationKind::Topic | DestinationKind::TemporaryTopic)
    }

    /// Whether this belongs to a connection and ends with it.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        self.kind.is_temporary()
    }

    /// The physical name, without options.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The option `consumer.prefetchSize`: how many messages may be under way to each consumer.
    #[must_use]
    pub fn consumer_prefetch(&self) -> Option<u32> {
        self.options.consumer_prefetch
    }
}

impl FromStr for Destination {
    type Err = DestinationError;

    /// A name without a kind is a queue.
    fn from_str(text: &str) -> Result<Self, DestinationError> {
        Self::parse(text, DestinationKind::Queue)
    }
}

impl PartialEq for Destination {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.name == other.name
    }
}

impl Eq for Destination {}

impl Hash for Destination {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.kind, &self.name).hash(state);
    }
}

impl PartialOrd for Destination {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Destination {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.kind, &self.name).cmp(&(other.kind, &other.name))
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.kind.scheme(), self.name)
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Why a text names no destination.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DestinationError {
    /// The name is empty.
    #[error(
        "a destination's name is empty; expected a name such as `orders`, `queue://orders` or `topic://prices`"
    )]
    Empty,
    /// The name breaks a rule.
    #[error("`{name}` cannot be the name of a destination: {reason}")]
    Name {
        /// The name, with control characters shown as escapes, cut where it is long.
        name: String,
        /// Which rule it breaks.
        reason: &'static str,
    },
    /// An option that does not exist.
    #[error("destination `{name}` has the unknown option `{option}`{}", .nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default())]
    UnknownOption {
        /// The destination.
        name: String,
        /// The option.
        option: String,
        /// The known option that is nearest to it.
        nearest: Option<&'static str>,
    },
    /// An option of ActiveMQ that Corriere does not have yet.
    #[error("destination `{name}` has the option `{option}`, which Corriere does not offer yet")]
    OptionNotYet {
        /// The destination.
        name: String,
        /// The option.
        option: &'static str,
    },
    /// An option whose value cannot be read, or that stands there twice.
    #[error("destination `{name}`: option `{option}` is `{value}`; expected {expected}")]
    OptionValue {
        /// The destination.
        name: String,
        /// The option.
        option: &'static str,
        /// The value.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
}

fn check_name(name: &str) -> Result<(), DestinationError> {
    if name.is_empty() {
        return Err(DestinationError::Empty);
    }
    name_fault(name).map_or(Ok(()), |reason| Err(DestinationError::Name { name: shown(name), reason }))
}

fn name_fault(name: &str) -> Option<&'static str> {
    let counted = name.strip_prefix("DLQ.").map_or(name, |rest| rest.strip_prefix("topic.").unwrap_or(rest));
    if counted.len() > Destination::MAXIMUM_NAME_BYTES {
        Some("it is longer than 1,024 bytes")
    } else if name.chars().any(char::is_control) {
        Some("it holds a control character")
    } else if name.trim() != name {
        Some("it begins or ends with white space")
    } else if name.contains("://") {
        Some(
            "`://` stands only behind the kind of a destination, which is queue, topic, temp-queue or temp-topic",
        )
    } else if name.contains(',') {
        Some("it holds a comma; several destinations in one are not offered yet")
    } else if name.split('.').any(|element| element == "*" || element == ">") {
        Some("it holds a wildcard; wildcards are not offered yet")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// C-43, as far as the name alone decides.
    #[test]
    fn an_unusual_name_works_unchanged() {
        for name in [
            "orders/eu",
            "a b",
            "名前",
            "Ü",
            "U\u{308}",
            "A",
            "a",
            "a..b",
            "../../etc/x",
            "CON",
            "a*b",
            "a.>b",
            "C:\\x",
            "#=&",
        ] {
            for kind in DestinationKind::ALL {
                let destination = Destination::parse(name, kind).unwrap();
                assert_eq!((destination.name(), destination.kind()), (name, kind));
                assert_eq!(destination.to_string().parse(), Ok(destination));
            }
        }
        assert_ne!(Destination::queue("A"), Destination::queue("a"));
        assert_ne!(Destination::queue("Ü"), Destination::queue("U\u{308}"));
    }

    /// C-43.
    #[test]
    fn a_name_with_another_meaning_or_no_clear_one_is_refused() {
        assert_eq!(Destination::queue(""), Err(DestinationError::Empty));
        assert_eq!("topic://".parse::<Destination>(), Err(DestinationError::Empty));
        assert_eq!(Destination::queue("?consumer.prefetchSize=1"), Err(DestinationError::Empty));
        for name in [
            "a,b",
            "a.*",
            "a.>",
            ">",
            "*.a",
            "topic://x",
            "queue://x",
            "http://x",
            " lead",
            "trail ",
            "\u{a0}lead",
            "a\nb",
            "a\0",
            "a\u{7f}b",
        ] {
            assert!(
                matches!(Destination::queue(name), Err(DestinationError::Name { .. })),
                "`{name:?}` should be refused"
            );
        }
        assert!("http://x".parse::<Destination>().is_err());
        assert!("queue://queue://x".parse::<Destination>().is_err());
    }

    /// C-43.
    #[test]
    fn a_long_name_is_refused_unless_it_is_the_dead_letter_queue_of_one_that_is_not() {
        let longest = "a".repeat(Destination::MAXIMUM_NAME_BYTES);
        assert!(Destination::queue(&longest).is_ok());
        assert!(Destination::queue(&format!("DLQ.{longest}")).is_ok());
        assert!(Destination::queue(&format!("DLQ.topic.{longest}")).is_ok());
        for name in [format!("{longest}a"), format!("DLQ.DLQ.{longest}"), "名".repeat(1_000)] {
            let error = Destination::queue(&name).unwrap_err().to_string();
            assert!(error.contains("longer than 1,024 bytes") && error.len() < 400, "{error}");
        }
    }

    #[test]
    fn options_are_no_part_of_the_name() {
        let plain = Destination::queue("q").unwrap();
        let with_options = Destination::queue("q?consumer.prefetchSize=0").unwrap();
        assert_eq!(plain, with_options);
        assert_eq!(plain.cmp(&with_options), Ordering::Equal);
        assert_eq!(std::collections::HashSet::from([plain.clone(), with_options.clone()]).len(), 1);
        assert_eq!(with_options.to_string(), "queue://q");
        assert_eq!((plain.consumer_prefetch(), with_options.consumer_prefetch()), (None, Some(0)));
    }

    #[test]
    fn a_temporary_destination_is_temporary_whatever_kind_was_named() {
        let queue = Destination::temporary(DestinationKind::Queue, "ID:1-2-3:1:1").unwrap();
        assert_eq!(queue.to_string(), "temp-queue://ID:1-2-3:1:1");
        assert!(queue.is_temporary() && !queue.is_topic());
        let topic = Destination::temporary(DestinationKind::TemporaryTopic, "ID:1-2-3:1:2").unwrap();
        assert!(topic.is_temporary() && topic.is_topic());
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_comes_back_as_it_was(text in prop::collection::vec(any::<char>(), 0..40).prop_map(String::from_iter)) {
            if let Ok(destination) = Destination::queue(&text) {
                prop_assert_eq!(destination.name(), text.split('?').next().unwrap());
                prop_assert_eq!(destination.to_string().parse(), Ok(destination));
            }
        }
    }
}

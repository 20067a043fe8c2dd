//! What is known of a listener before it runs.

use std::fmt;
use std::str::FromStr;

use corriere_core::AcknowledgeMode;
use thiserror::Error;

use super::{BoxFuture, Invocation, Outcome};
use crate::beans::BeanRequest;

/// A listener as `#[jms_listener]` defines it: `on_order::DEF` for the function `on_order`.
///
/// What is `None` is left to `[listener_containers.NAME]`, and everything here to `[listeners.ID]`.
#[derive(Clone, Copy, Debug)]
pub struct ListenerDef {
    /// The function's name, unless the attribute gives an `id`.
    pub id: &'static str,
    /// The path of the module that it stands in.
    pub module: &'static str,
    /// Where its messages come from.
    pub destination: ListenerDestination,
    /// When a message is settled.
    pub acknowledge: Option<Acknowledge>,
    /// How many workers.
    pub concurrency: Option<Concurrency>,
    /// Where replies go that the request names no address for.
    pub send_to: Option<&'static str>,
    /// The name of its `[listener_containers.NAME]`, `default` when absent.
    pub container: Option<&'static str>,
    /// The beans that its arguments ask for, checked before the start: a list for each argument.
    pub beans: &'static [&'static [BeanRequest]],
    /// Whether the function's return type is more than `()`, so that there are replies to send.
    pub replies: bool,
    /// Whether the function is blocking, so that it runs on a thread of its own and cannot be dropped.
    pub blocking: bool,
    /// Runs the function.
    pub invoke: for<'a> fn(&'a mut Invocation) -> BoxFuture<'a, Outcome>,
}

impl ListenerDef {
    /// Every bean that the arguments ask for.
    pub fn bean_requests(&self) -> impl Iterator<Item = BeanRequest> {
        self.beans.iter().flat_map(|requests| requests.iter().copied())
    }

    /// Every listener that is linked into the program, in the order of module and id.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all: Vec<Self> = inventory::iter::<ListenerRegistration>().map(|found| *found.0).collect();
        all.sort_by_key(|listener| (listener.module, listener.id));
        all
    }
}

/// A listener that is linked into the program; collected by `inventory`.
#[derive(Clone, Copy, Debug)]
pub struct ListenerRegistration(pub &'static ListenerDef);

inventory::collect!(ListenerRegistration);

/// Where a listener's messages come from: a key of `[destinations]`, or a physical name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerDestination {
    /// `queue = "…"`.
    Queue(&'static str),
    /// `topic = "…"`.
    Topic(&'static str),
}

impl ListenerDestination {
    /// The name as it stands in the attribute.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Queue(name) | Self::Topic(name) => name,
        }
    }

    /// Whether it is a topic.
    #[must_use]
    pub fn is_topic(self) -> bool {
        matches!(self, Self::Topic(_))
    }
}

impl fmt::Display for ListenerDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue(name) => write!(f, "queue `{name}`"),
            Self::Topic(name) => write!(f, "topic `{name}`"),
        }
    }
}

/// When a listener's message is settled. In no mode is it settled before the function has returned `Ok`, unless the
/// function settles it by itself; an `Err` or a panic gives it back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acknowledge {
    /// `ack = "auto"`: when the function has returned `Ok`.
    #[default]
    Auto,
    /// `ack = "client"`: by the function, else when it has returned `Ok`. `Delivery::acknowledge` settles this one message.
    Client,
    /// `ack = "transacted"`: with the session's transaction, which is committed when the function has returned `Ok` and
    /// takes in everything that was sent with the session.
    Transacted,
    /// `ack = "manual"`: only by who calls `Delivery::acknowledge`, which may be long after the function has returned and
    /// settles this one message.
    Manual,
}

impl Acknowledge {
    /// The mode of the session that such a listener receives with.
    #[must_use]
    pub fn session_mode(self) -> AcknowledgeMode {
        match self {
            Self::Auto => AcknowledgeMode::Auto,
            Self::Client | Self::Manual => AcknowledgeMode::Client,
            Self::Transacted => AcknowledgeMode::Transacted,
        }
    }
}

impl fmt::Display for Acknowledge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Client => "client",
            Self::Transacted => "transacted",
            Self::Manual => "manual",
        })
    }
}

impl FromStr for Acknowledge {
    type Err = AcknowledgeError;

    fn from_str(text: &str) -> Result<Self, AcknowledgeError> {
        match text {
            "auto" => Ok(Self::Auto),
            "client" => Ok(Self::Client),
            "transacted" => Ok(Self::Transacted),
            "manual" => Ok(Self::Manual),
            _ => Err(AcknowledgeError { found: text.to_owned() }),
        }
    }
}

/// A text that is no acknowledge mode.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{found}` is not an acknowledge mode; expected `auto`, `client`, `transacted` or `manual`")]
pub struct AcknowledgeError {
    /// The text.
    pub found: String,
}

/// How many workers a listener has: at least `lower`, and up to `upper` while messages wait.
///
/// As text `"2-8"`; a single number is the upper bound, so `"5"` is one to five.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    lower: usize,
    upper: usize,
}

impl Concurrency {
    /// One worker.
    pub const ONE: Self = Self { lower: 1, upper: 1 };

    /// These bounds; a `lower` of zero is one, an `upper` below `lower` is `lower`.
    #[must_use]
    pub const fn new(lower: usize, upper: usize) -> Self {
        let lower = if lower == 0 { 1 } else { lower };
        Self { lower, upper: if upper < lower { lower } else { upper } }
    }

    /// The number of workers that are always there.
    #[must_use]
    pub const fn lower(self) -> usize {
        self.lower
    }

    /// The number of workers that is never exceeded.
    #[must_use]
    pub const fn upper(self) -> usize {
        self.upper
    }
}

impl Default for Concurrency {
    fn default() -> Self {
        Self::ONE
    }
}

impl fmt::Display for Concurrency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.lower, self.upper)
    }
}

impl FromStr for Concurrency {
    type Err = ConcurrencyError;

    fn from_str(text: &str) -> Result<Self, ConcurrencyError> {
        let number = |part: &str| {
            // `parse` alone would take a sign.
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse()
                .ok()
                .filter(|_| digits)
                .ok_or_else(|| ConcurrencyError::Malformed { text: text.into() })
        };
        let (lower, upper) = match text.split_once('-') {
            Some((lower, upper)) => (number(lower)?, number(upper)?),
            None => (1, number(text)?),
        };
        if lower == 0 || upper == 0 {
            return Err(ConcurrencyError::Zero { text: text.into() });
        }
        if lower > upper {
            return Err(ConcurrencyError::Reversed { text: text.into() });
        }
        Ok(Self { lower, upper })
    }
}

/// Why a text names no concurrency.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConcurrencyError {
    /// Neither a number nor two numbers with a dash.
    #[error(
        "concurrency `{text}` cannot be read; expected bounds such as \"2-8\", or an upper bound such as \"8\""
    )]
    Malformed {
        /// The text.
        text: String,
    },
    /// A bound of zero.
    #[error("concurrency `{text}` allows no worker; expected bounds of at least 1")]
    Zero {
        /// The text.
        text: String,
    },
    /// The lower bound is above the upper one.
    #[error("concurrency `{text}` has its lower bound above its upper one")]
    Reversed {
        /// The text.
        text: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_number_is_the_upper_bound() {
        assert_eq!("5".parse(), Ok(Concurrency::new(1, 5)));
        assert_eq!("3-5".parse(), Ok(Concurrency::new(3, 5)));
    }

    #[test]
    fn bounds_that_make_no_sense_are_refused() {
        for text in ["", "-", "5-", "-5", "a", "1-2-3", "+2", " 2"] {
            let refused = text.parse::<Concurrency>();
            assert!(matches!(refused, Err(ConcurrencyError::Malformed { .. })), "{text:?}: {refused:?}");
        }
        for text in ["0", "0-3", "0-0"] {
            assert!(matches!(text.parse::<Concurrency>(), Err(ConcurrencyError::Zero { .. })), "{text:?}");
        }
        assert!(matches!("5-3".parse::<Concurrency>(), Err(ConcurrencyError::Reversed { .. })));
    }
}

//! What two sides agree on before anything else is said (OpenWire, section 2).
//!
//! Each side sends its [`WireFormatInfo`] first, in [`WireFormat::default`], and then speaks what follows from both.
//!
//! ```
//! use std::time::Duration;
//!
//! use corriere_openwire::negotiation::Preferences;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ours = Preferences::default();
//! let peer = Preferences { maximum_inactivity: Some(Duration::from_secs(5)), ..Preferences::default() };
//!
//! let agreement = ours.negotiate(&peer.info()?)?;
//! assert_eq!(agreement.format.version.number(), 12);
//! assert_eq!(agreement.maximum_inactivity, Some(Duration::from_secs(5)));
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;
use std::time::Duration;

use corriere_core::Value;
use thiserror::Error;

use crate::codec::error::{DecodeError, EncodeError};
use crate::codec::format::{DEFAULT_MAXIMUM_FRAME_SIZE, WireFormat};
use crate::codec::primitive::{Primitive, PrimitiveMap};
use crate::codec::structures::WireFormatInfo;
use crate::codec::version::Version;

/// What this side can and wants. Tight encoding, the cache and frames without a size are always declined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preferences {
    /// How large a frame may be.
    pub maximum_frame_size: usize,
    /// Whether exceptions carry their stack.
    pub stack_traces: bool,
    /// Whether small packets are sent at once.
    pub tcp_no_delay: bool,
    /// How long a side may be silent; `None` for as long as it likes.
    pub maximum_inactivity: Option<Duration>,
    /// How long until silence is looked for.
    pub initial_delay: Duration,
    /// The host that the client was told to connect to.
    pub host: Option<Arc<str>>,
    /// What else the peer is told; one that does not know it takes no notice. It changes nothing of the above.
    pub others: PrimitiveMap,
}

impl Default for Preferences {
    /// ActiveMQ's defaults, without stacks.
    fn default() -> Self {
        Self {
            maximum_frame_size: DEFAULT_MAXIMUM_FRAME_SIZE,
            stack_traces: false,
            tcp_no_delay: true,
            maximum_inactivity: Some(Duration::from_secs(30)),
            initial_delay: Duration::from_secs(10),
            host: None,
            others: PrimitiveMap::default(),
        }
    }
}

/// What both sides agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Agreement {
    /// How everything that follows is encoded, in both directions.
    pub format: WireFormat,
    /// Whether small packets are sent at once.
    pub tcp_no_delay: bool,
    /// How long a side may be silent; `None` for as long as it likes.
    pub maximum_inactivity: Option<Duration>,
    /// How long until silence is looked for.
    pub initial_delay: Duration,
    /// All that the peer said.
    pub properties: PrimitiveMap,
}

/// Why a peer cannot be talked to.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum NegotiationError {
    /// It is too old.
    #[error("the peer speaks version {version} of OpenWire; expected at least {}", Version::MINIMUM)]
    Version {
        /// What it speaks.
        version: i32,
    },
    /// Its properties cannot be read.
    #[error("the peer's wire format cannot be read: {0}")]
    Properties(DecodeError),
}

const TCP_NO_DELAY: &str = "TcpNoDelayEnabled";
const SIZE_PREFIX_DISABLED: &str = "SizePrefixDisabled";
const CACHE: &str = "CacheEnabled";
const CACHE_SIZE: &str = "CacheSize";
const TIGHT_ENCODING: &str = "TightEncodingEnabled";
const STACK_TRACES: &str = "StackTraceEnabled";
const MAXIMUM_INACTIVITY: &str = "MaxInactivityDuration";
/// Spelled so on the wire.
const INITIAL_DELAY: &str = "MaxInactivityDurationInitalDelay";
const MAXIMUM_FRAME_SIZE: &str = "MaxFrameSize";
const HOST: &str = "Host";

impl Preferences {
    /// What is sent to the peer, first of all.
    ///
    /// # Errors
    /// One of the other properties cannot be written.
    pub fn info(&self) -> Result<WireFormatInfo, EncodeError> {
        // Of a name that is there twice the last counts: what is declined stays so whatever the others say.
        let mut properties = self.others.clone();
        properties.push(TCP_NO_DELAY, self.tcp_no_delay);
        properties.push(SIZE_PREFIX_DISABLED, false);
        properties.push(CACHE, false);
        properties.push(CACHE_SIZE, 0);
        properties.push(TIGHT_ENCODING, false);
        properties.push(STACK_TRACES, self.stack_traces);
        let inactivity = self.maximum_inactivity.map_or(0, milliseconds);
        properties.push(MAXIMUM_INACTIVITY, inactivity);
        properties.push(INITIAL_DELAY, milliseconds(self.initial_delay));
        let size = i64::try_from(self.maximum_frame_size).unwrap_or(i64::MAX);
        properties.push(MAXIMUM_FRAME_SIZE, size);
        if let Some(host) = &self.host {
            properties.push(HOST, Arc::clone(host));
        }
        WireFormatInfo::new(Version::MAXIMUM.number().into(), &properties)
    }

    /// What is agreed on with a peer that sent `theirs`: of each number the smaller one, and only what both want.
    ///
    /// # Errors
    /// [`NegotiationError`]
    pub fn negotiate(&self, theirs: &WireFormatInfo) -> Result<Agreement, NegotiationError> {
        let version =
            Version::agreed(theirs.version).ok_or(NegotiationError::Version { version: theirs.version })?;
        let properties = theirs.properties().map_err(NegotiationError::Properties)?;
        let wants = |name| matches!(properties.get(name), Some(Primitive::Plain(Value::Boolean(true))));
        // What is absent, or not above zero, is no bound; for the silence it says that there is none.
        let bound = |name| match properties.get(name) {
            Some(Primitive::Plain(Value::Long(number))) => {
                u64::try_from(*number).ok().filter(|number| *number > 0)
            }
            _ => None,
        };
        let size =
            bound(MAXIMUM_FRAME_SIZE).map_or(usize::MAX, |size| usize::try_from(size).unwrap_or(usize::MAX));
        let inactivity = bound(MAXIMUM_INACTIVITY).map(Duration::from_millis);
        let delay = bound(INITIAL_DELAY).map_or(self.initial_delay, Duration::from_millis);
        Ok(Agreement {
            format: WireFormat {
                version,
                stack_traces: self.stack_traces && wants(STACK_TRACES),
                maximum_frame_size: self.maximum_frame_size.min(size),
            },
            tcp_no_delay: self.tcp_no_delay && wants(TCP_NO_DELAY),
            maximum_inactivity: self
                .maximum_inactivity
                .and_then(|ours| inactivity.map(|theirs| theirs.min(ours))),
            initial_delay: delay.min(self.initial_delay),
            properties,
        })
    }
}

impl Agreement {
    /// The host that the client was told to connect to.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        match self.properties.get(HOST) {
            Some(Primitive::Plain(Value::String(host))) => Some(host),
            _ => None,
        }
    }
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(version: i32, properties: &[(&str, Primitive)]) -> WireFormatInfo {
        let properties = properties.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
        WireFormatInfo::new(version, &PrimitiveMap(properties)).unwrap()
    }

    #[test]
    fn of_each_number_the_smaller_one_is_taken_and_only_what_both_want() {
        let ours = Preferences { stack_traces: true, ..Preferences::default() };
        let theirs = peer(
            10,
            &[
                (STACK_TRACES, Primitive::from(true)),
                (TIGHT_ENCODING, Primitive::from(true)),
                (MAXIMUM_FRAME_SIZE, Primitive::from(5_000_i64)),
                (MAXIMUM_INACTIVITY, Primitive::from(40_000_i64)),
                (INITIAL_DELAY, Primitive::from(2_000_i64)),
                (HOST, Primitive::from("broker.example")),
            ],
        );
        let agreed = ours.negotiate(&theirs).unwrap();
        assert_eq!(agreed.format.version.number(), 10);
        assert_eq!((agreed.format.stack_traces, agreed.format.maximum_frame_size), (true, 5_000));
        assert!(!agreed.tcp_no_delay, "the peer does not say that it wants it");
        assert_eq!(agreed.maximum_inactivity, Some(Duration::from_secs(30)));
        assert_eq!(agreed.initial_delay, Duration::from_secs(2));
        assert_eq!(agreed.host(), Some("broker.example"));
    }

    #[test]
    fn a_peer_that_does_not_say_how_long_it_may_be_silent_may_be_so_for_ever() {
        let agreed = Preferences::default().negotiate(&peer(12, &[])).unwrap();
        assert_eq!(agreed.maximum_inactivity, None);
        for unset in [0_i64, -1] {
            let theirs =
                [(MAXIMUM_INACTIVITY, Primitive::from(unset)), (MAXIMUM_FRAME_SIZE, Primitive::from(unset))];
            let agreed = Preferences::default().negotiate(&peer(12, &theirs)).unwrap();
            assert_eq!(agreed.maximum_inactivity, None);
            assert_eq!(agreed.format.maximum_frame_size, DEFAULT_MAXIMUM_FRAME_SIZE);
        }
    }

    #[test]
    fn we_decline_what_we_do_not_speak() {
        let info = Preferences::default().info().unwrap();
        let properties = info.properties().unwrap();
        for name in [TIGHT_ENCODING, CACHE, SIZE_PREFIX_DISABLED] {
            assert_eq!(properties.get(name), Some(&Primitive::from(false)), "{name}");
        }
        assert_eq!(Preferences::default().negotiate(&info).unwrap().format, WireFormat::default());
    }

    #[test]
    fn what_else_is_said_does_not_accept_what_is_declined() {
        let mut others = PrimitiveMap::default();
        others.push("Corriere", Primitive::from(true));
        others.push(TIGHT_ENCODING, Primitive::from(true));
        let info = Preferences { others, ..Preferences::default() }.info().unwrap();
        let properties = info.properties().unwrap();
        assert_eq!(properties.get("Corriere"), Some(&Primitive::from(true)));
        assert_eq!(properties.get(TIGHT_ENCODING), Some(&Primitive::from(false)));
    }

    #[test]
    fn a_peer_that_is_too_old_or_says_too_much_is_refused_by_name() {
        let error = Preferences::default().negotiate(&peer(8, &[])).unwrap_err();
        assert_eq!(error.to_string(), "the peer speaks version 8 of OpenWire; expected at least 9");
        let many: Vec<_> = (0..65).map(|_| ("a", Primitive::from(Value::Null))).collect();
        let nested = [("a", Primitive::List(Vec::new()))];
        let long = [("a", Primitive::from("a".repeat(513)))];
        for properties in [&many[..], &nested, &long] {
            let error = Preferences::default().negotiate(&peer(12, properties)).unwrap_err();
            assert!(matches!(error, NegotiationError::Properties(_)), "{error}");
        }
    }
}

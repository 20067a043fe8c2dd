//! What two peers of Corriere agree on beyond OpenWire, so that the broker counts, delays and ends redelivery.
//!
//! In OpenWire a client redelivers by itself: it keeps a message that failed, says so with an acknowledgement of the kind
//! REDELIVERED, and says POISON when it gives up. A client of Corriere gives the message back instead. Both sides say that
//! they speak so by the property [`PEER_PROPERTY`] of their `WireFormatInfo` ([`announce`], [`is_spoken_by`]); where both do:
//!
//! | on the wire | means |
//! | --- | --- |
//! | `MessageAck` REDELIVERED | [`AckKind::Redelivered`]: the range goes back, and an epoch begins, also where nothing of the range is known. The delay and the cause are in `poison_cause` ([`Return`]) |
//! | `MessageAck` POISON | as in OpenWire, with a cause in the same form, without a delay |
//! | `MessageAck` POISON with a `corriere.Undeliverable` | [`AckKind::Undeliverable`]: the consumer cannot read it, and nothing counts as handed over |
//! | `MessageDispatch.command_id` | the delivery's [`epoch`](corriere_core::provider::Dispatch::epoch), as nobody answers a dispatch |
//! | `MessagePull` | a timeout of at least 1 grants so many messages; -1 drains, which a dispatch without a message confirms, whatever came |
//! | `ConsumerInfo.additional_predicate` | a `JournalTrace` with the window's extension and the redelivery policy ([`ConsumerTerms`]) |
//! | `ConsumerInfo` of a consumer that is there | it is given this window: `prefetch_size`, and the extension of its terms |
//! | `ConsumerControl` with a prefetch | the broker has given the consumer this one |
//! | `ConsumerControl` with `stop` | the consumer stands still, with as many unacknowledged messages as its prefetch says ([`slow`]) |
//!
//! Everything else is as in OpenWire: a hand-over is an acknowledgement of the kind DELIVERED; a browser with a window of 0 is
//! granted what it pulls, and a dispatch without a message is its end.
//!
//! A consumer that is removed may still settle what it was handed, as in core: `RemoveInfo` names the last by its
//! `brokerSequenceId`, and the rest ends with the session. If the connection is lost, what counts is what was handed over.

use std::sync::Arc;
use std::time::Duration;

use corriere_core::provider::{AckKind, Cause, CauseKind};
use corriere_core::{Destination, RedeliveryOverrides};
use thiserror::Error;

use crate::codec::Structure;
use crate::codec::primitive::{Primitive, PrimitiveMap};
use crate::codec::structures::{ConsumerControl, ConsumerId, JournalTrace, Throwable};

/// The property of `WireFormatInfo` by which a side says that it speaks as this module does; a boolean.
pub const PEER_PROPERTY: &str = "CorriereRedelivery";

/// How many bytes of a text of ours go into an exception: with the longest encoding far less than a text may have.
const LONGEST: usize = 16_000;

/// Adds the property to what a side says of itself ([`Preferences::others`](crate::negotiation::Preferences::others)).
pub fn announce(others: &mut PrimitiveMap) {
    others.push(PEER_PROPERTY, true);
}

/// Whether the peer of these properties ([`Agreement::properties`](crate::negotiation::Agreement::properties)) said so.
#[must_use]
pub fn is_spoken_by(properties: &PrimitiveMap) -> bool {
    properties.get(PEER_PROPERTY) == Some(&Primitive::from(true))
}

/// Why, and until when, messages go back.
///
/// As an exception its class is the kind of the cause, `corriere.Failure`, `corriere.Conversion` or `corriere.Resource`; its
/// message has the delay in milliseconds on the first line, the listener on the second, either line empty where there is
/// none, and the text behind them. A text of more than 16,000 bytes is cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Return {
    /// Overrides the policy's delay. Parts of a millisecond are rounded up.
    pub delay: Option<Duration>,
    /// Why.
    pub cause: Cause,
}

const CLASSES: [(CauseKind, &str); 3] = [
    (CauseKind::Failure, "corriere.Failure"),
    (CauseKind::Conversion, "corriere.Conversion"),
    (CauseKind::Resource, "corriere.Resource"),
];

impl Return {
    /// The exception that stands for it.
    #[must_use]
    pub fn to_throwable(&self) -> Throwable {
        let class = CLASSES.iter().find(|(kind, _)| *kind == self.cause.kind).map_or("", |(_, class)| class);
        let delay = self.delay.map(|delay| milliseconds(delay).to_string()).unwrap_or_default();
        let listener = self.cause.listener.as_deref().unwrap_or_default();
        let listener = cut(listener).replace('\n', " ");
        let message = format!("{delay}\n{listener}\n{}", cut(&self.cause.text));
        Throwable { class: class.into(), message: Some(message.into()), ..Throwable::default() }
    }

    /// What an exception says. One that a peer of another make, or none, sent is a failure in the words of that exception.
    #[must_use]
    pub fn from_throwable(throwable: Option<&Throwable>) -> Self {
        throwable.and_then(Self::from_ours).unwrap_or_else(|| {
            let text = throwable.map_or_else(|| "the consumer gave no reason".to_owned(), in_words);
            Self { delay: None, cause: Cause::failure(text) }
        })
    }

    fn from_ours(throwable: &Throwable) -> Option<Self> {
        let (kind, _) = CLASSES.iter().find(|(_, class)| **class == *throwable.class)?;
        let mut lines = throwable.message.as_deref()?.splitn(3, '\n');
        let (delay, listener, text) = (lines.next()?, lines.next()?, lines.next()?);
        let delay = match delay {
            "" => None,
            number => Some(Duration::from_millis(number.parse().ok()?)),
        };
        let listener = Some(listener).filter(|listener| !listener.is_empty()).map(Arc::from);
        Some(Self { delay, cause: Cause { kind: *kind, text: text.into(), listener } })
    }
}

/// The class of what is said of a message that its consumer cannot be given.
const UNDELIVERABLE: &str = "corriere.Undeliverable";

/// The exception that goes with POISON for [`AckKind::Undeliverable`]; its message is the reason.
#[must_use]
pub fn undeliverable(reason: &str) -> Throwable {
    Throwable { class: UNDELIVERABLE.into(), message: Some(cut(reason).into()), ..Throwable::default() }
}

/// What POISON with this exception says.
#[must_use]
pub fn condemnation(throwable: Option<&Throwable>) -> AckKind {
    match throwable {
        Some(Throwable { class, message, .. }) if **class == *UNDELIVERABLE => {
            AckKind::Undeliverable { reason: message.clone().unwrap_or_default() }
        }
        _ => AckKind::Poison { cause: Return::from_throwable(throwable).cause },
    }
}

/// What says of a consumer that it stands still by its own doing, with so many messages that it has not acknowledged
/// ([`Event::SlowConsumer`](corriere_core::provider::Event::SlowConsumer)).
#[must_use]
pub fn slow(consumer: ConsumerId, destination: &Destination, unacknowledged: u64) -> ConsumerControl {
    ConsumerControl {
        destination: Some(destination.into()),
        consumer_id: Some(consumer),
        prefetch: i32::try_from(unacknowledged).unwrap_or(i32::MAX),
        stop: true,
        ..ConsumerControl::default()
    }
}

/// An exception as Java shows it: its class, a colon, what it says.
fn in_words(throwable: &Throwable) -> String {
    match throwable.message.as_deref() {
        Some(message) if !message.is_empty() => format!("{}: {}", throwable.class, cut(message)),
        _ => throwable.class.to_string(),
    }
}

/// As much of a text as an exception has room for.
pub(crate) fn cut(text: &str) -> &str {
    let end = text.floor_char_boundary(LONGEST);
    text.get(..end).unwrap_or_default()
}

/// What a consumer of Corriere wants of the broker that `ConsumerInfo` has no field for.
///
/// On the wire it is the text of a `JournalTrace`: names and values as in a URL,
/// `extension=5&maximumRedeliveries=-1&initialRedeliveryDelay=250`. The names are `extension`, `defaultPrefetch` (`true` where
/// the broker's policy may choose the prefetch), `maximumRedeliveries` (-1 for no limit), `initialRedeliveryDelay`, `redeliveryDelay`, `maximumRedeliveryDelay` (milliseconds; -1 for no bound of the last),
/// `backOffMultiplier` (-1 for none) and `nonBlockingRedelivery`; what is absent is left to the broker, an absent extension is
/// no bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConsumerTerms {
    /// See [`Credit::Window`](corriere_core::provider::Credit::Window).
    pub extension: Option<u32>,
    /// See [`Subscribe::is_default_credit`](corriere_core::provider::Subscribe::is_default_credit).
    pub is_default_credit: bool,
    /// Where it wants another redelivery policy than the broker's.
    pub redelivery: RedeliveryOverrides,
}

/// Terms that cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{term}` is no term of a consumer; expected {expected}")]
#[non_exhaustive]
pub struct TermsError {
    /// The part that cannot be read, or what stands there instead.
    pub term: String,
    /// What it should be.
    pub expected: &'static str,
}

const EXTENSION: &str = "extension";
const DEFAULT_PREFETCH: &str = "defaultPrefetch";
const MAXIMUM_REDELIVERIES: &str = "maximumRedeliveries";
const INITIAL_DELAY: &str = "initialRedeliveryDelay";
const DELAY: &str = "redeliveryDelay";
const MAXIMUM_DELAY: &str = "maximumRedeliveryDelay";
const BACK_OFF: &str = "backOffMultiplier";
const NON_BLOCKING: &str = "nonBlockingRedelivery";

/// What says that there is no limit, no bound or no factor.
const NONE: &str = "-1";

impl ConsumerTerms {
    /// What stands for it in `ConsumerInfo.additional_predicate`.
    #[must_use]
    pub fn to_structure(&self) -> Structure {
        let wanted = &self.redelivery;
        let time = |delay: Duration| milliseconds(delay).to_string();
        let terms = [
            (EXTENSION, self.extension.map(|extension| extension.to_string())),
            (DEFAULT_PREFETCH, self.is_default_credit.then(|| true.to_string())),
            (
                MAXIMUM_REDELIVERIES,
                wanted.maximum_redeliveries.map(|maximum| or_none(maximum, |n| n.to_string())),
            ),
            (INITIAL_DELAY, wanted.initial_delay.map(time)),
            (DELAY, wanted.delay.map(time)),
            (MAXIMUM_DELAY, wanted.maximum_delay.map(|maximum| or_none(maximum, time))),
            (BACK_OFF, wanted.back_off.map(|factor| or_none(factor, |factor| factor.to_string()))),
            (NON_BLOCKING, wanted.non_blocking.map(|is_so| is_so.to_string())),
        ];
        let terms = terms.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
        let message = Some(terms.collect::<Vec<_>>().join("&").into());
        JournalTrace { message }.into()
    }

    /// What `ConsumerInfo.additional_predicate` of a peer says; nothing of it where there is none.
    ///
    /// # Errors
    /// Another structure, or a term that is not known or cannot be read.
    pub fn from_structure(structure: Option<&Structure>) -> Result<Self, TermsError> {
        let mut terms = Self::default();
        let text = match structure {
            None => return Ok(terms),
            Some(Structure::JournalTrace(trace)) => trace.message.as_deref().unwrap_or_default(),
            Some(other) => {
                let term = other.name().to_owned();
                return Err(TermsError { term, expected: "a JournalTrace with the terms" });
            }
        };
        for term in text.split('&').filter(|term| !term.is_empty()) {
            let (name, value) = term.split_once('=').unwrap_or((term, ""));
            terms.set(name, value).map_err(|expected| TermsError { term: cut(term).to_owned(), expected })?;
        }
        Ok(terms)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), &'static str> {
        let wanted = &mut self.redelivery;
        match name {
            EXTENSION => self.extension = Some(value.parse().map_err(|_| "a number of messages")?),
            DEFAULT_PREFETCH => self.is_default_credit = truth(value)?,
            MAXIMUM_REDELIVERIES => {
                wanted.maximum_redeliveries = Some(unless_none(value, |value| {
                    value.parse().map_err(|_| "a number of redeliveries, -1 for no limit")
                })?);
            }
            INITIAL_DELAY => wanted.initial_delay = Some(time(value)?),
            DELAY => wanted.delay = Some(time(value)?),
            MAXIMUM_DELAY => wanted.maximum_delay = Some(unless_none(value, time)?),
            BACK_OFF => {
                wanted.back_off =
                    Some(unless_none(value, |value| value.parse().map_err(|_| "a factor, -1 for none"))?);
            }
            NON_BLOCKING => wanted.non_blocking = Some(truth(value)?),
            _ => {
                return Err(
                    "extension, defaultPrefetch, maximumRedeliveries, initialRedeliveryDelay, redeliveryDelay, \
                     maximumRedeliveryDelay, backOffMultiplier or nonBlockingRedelivery",
                );
            }
        }
        Ok(())
    }
}

fn or_none<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), show)
}

fn unless_none<T>(
    value: &str,
    read: impl FnOnce(&str) -> Result<T, &'static str>,
) -> Result<Option<T>, &'static str> {
    if value == NONE { Ok(None) } else { read(value).map(Some) }
}

fn truth(value: &str) -> Result<bool, &'static str> {
    value.parse().map_err(|_| "`true` or `false`")
}

fn time(value: &str) -> Result<Duration, &'static str> {
    value.parse().map(Duration::from_millis).map_err(|_| "a number of milliseconds")
}

/// The milliseconds of a delay, which is never made shorter.
fn milliseconds(delay: Duration) -> u64 {
    u64::try_from(delay.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use corriere_core::RedeliveryPolicy;

    use super::*;

    #[test]
    fn delay_and_cause_come_back_from_the_exception_that_carries_them() {
        let kinds = [CauseKind::Failure, CauseKind::Conversion, CauseKind::Resource];
        for (kind, delay) in kinds.into_iter().zip([None, Some(Duration::ZERO), Some(Duration::from_secs(5))])
        {
            for (text, listener) in [("", None), ("two\nlines\n", Some("on_order")), ("é\0", Some("名"))] {
                let cause = Cause { kind, text: text.into(), listener: listener.map(Arc::from) };
                let sent = Return { delay, cause };
                assert_eq!(Return::from_throwable(Some(&sent.to_throwable())), sent);
            }
        }
        let short = Return { delay: Some(Duration::from_micros(1)), cause: Cause::failure("x") };
        let back = Return::from_throwable(Some(&short.to_throwable()));
        assert_eq!(back.delay, Some(Duration::from_millis(1)));
    }

    #[test]
    fn what_cannot_be_delivered_is_told_from_what_failed() {
        let undeliverable = undeliverable("not a number");
        assert_eq!(
            condemnation(Some(&undeliverable)),
            AckKind::Undeliverable { reason: "not a number".into() }
        );
        let failed = Return { delay: None, cause: Cause::failure("no luck") };
        let condemned = condemnation(Some(&failed.to_throwable()));
        assert_eq!(condemned, AckKind::Poison { cause: Cause::failure("no luck") });
        assert!(matches!(condemnation(None), AckKind::Poison { .. }));
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let sent = Return { delay: None, cause: Cause::failure("é".repeat(LONGEST)) };
        let back = Return::from_throwable(Some(&sent.to_throwable()));
        assert_eq!(&*back.cause.text, "é".repeat(LONGEST / 2));
    }

    #[test]
    fn what_another_make_says_is_a_failure_in_its_words() {
        let words = |throwable: Option<&Throwable>| {
            let Return { delay, cause } = Return::from_throwable(throwable);
            assert_eq!((delay, cause.kind, &cause.listener), (None, CauseKind::Failure, &None));
            cause.text.to_string()
        };
        let java = |class: &str, message: Option<&str>| Throwable {
            class: class.into(),
            message: message.map(Arc::from),
            ..Throwable::default()
        };
        assert_eq!(words(None), "the consumer gave no reason");
        assert_eq!(words(Some(&java("java.lang.Throwable", Some("no")))), "java.lang.Throwable: no");
        assert_eq!(words(Some(&java("java.lang.Throwable", None))), "java.lang.Throwable");
        // It looks like ours, and is not.
        assert_eq!(words(Some(&java("corriere.Failure", Some("x\n\ny")))), "corriere.Failure: x\n\ny");
    }

    #[test]
    fn terms_come_back_as_they_were() {
        let policy = RedeliveryPolicy { back_off: Some(1.5), ..RedeliveryPolicy::default() };
        let endless = RedeliveryPolicy { maximum_redeliveries: None, ..RedeliveryPolicy::default() };
        for terms in [
            ConsumerTerms::default(),
            ConsumerTerms { extension: Some(0), is_default_credit: true, redelivery: policy.into() },
            ConsumerTerms { extension: Some(u32::MAX), is_default_credit: false, redelivery: endless.into() },
        ] {
            assert_eq!(ConsumerTerms::from_structure(Some(&terms.to_structure())), Ok(terms));
        }
        assert_eq!(ConsumerTerms::from_structure(None), Ok(ConsumerTerms::default()));
    }

    #[test]
    fn terms_that_are_not_known_are_refused_by_name() {
        let read = |text: &str| {
            let trace = Structure::from(JournalTrace { message: Some(text.into()) });
            ConsumerTerms::from_structure(Some(&trace)).unwrap_err().to_string()
        };
        assert!(
            read("extention=1").starts_with("`extention=1` is no term of a consumer; expected extension, ")
        );
        assert_eq!(
            read("extension=-1"),
            "`extension=-1` is no term of a consumer; expected a number of messages"
        );
        assert_eq!(
            read("extension=1&redeliveryDelay=1s"),
            "`redeliveryDelay=1s` is no term of a consumer; expected a number of milliseconds"
        );
        let other = Structure::from(JournalTrace::default());
        assert!(ConsumerTerms::from_structure(Some(&other)).is_ok());
        assert!(
            ConsumerTerms::from_structure(Some(&crate::structures::KeepAliveInfo::default().into())).is_err()
        );
    }
}

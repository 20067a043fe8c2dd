//! Patterns of destinations: names with wildcards.

use std::fmt;

use thiserror::Error;

use crate::destination::{Destination, DestinationError, DestinationKind};

/// A name of queues, or of topics, in which `*` stands for one element between dots and `>`, at the end, for all further ones,
/// also for none: `orders.>` fits `orders`, too (ActiveMQ's wildcards).
///
/// Of two that fit the same name the more specific one has, at the first element in which they differ, a name where the other has
/// a wildcard, its end where the other has `>`, or `*` where the other has `>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestinationPattern {
    kind: DestinationKind,
    elements: Vec<Element>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Element {
    Name(String),
    One,
    Rest,
}

impl DestinationPattern {
    /// A pattern for queues.
    ///
    /// # Errors
    /// See [`PatternError`].
    pub fn queue(pattern: &str) -> Result<Self, PatternError> {
        Self::new(DestinationKind::Queue, pattern)
    }

    /// A pattern for topics.
    ///
    /// # Errors
    /// See [`PatternError`].
    pub fn topic(pattern: &str) -> Result<Self, PatternError> {
        Self::new(DestinationKind::Topic, pattern)
    }

    fn new(kind: DestinationKind, pattern: &str) -> Result<Self, PatternError> {
        // It would be part of the first element's name, which then fits nothing.
        if let Some((_, name)) = DestinationKind::split(pattern) {
            return Err(PatternError::Kind { pattern: pattern.to_owned(), name: name.to_owned() });
        }
        let parts: Vec<_> = pattern.split('.').collect();
        let mut elements = Vec::with_capacity(parts.len());
        for (place, part) in (1..).zip(&parts) {
            elements.push(match *part {
                "*" => Element::One,
                ">" if place < parts.len() => {
                    return Err(PatternError::RestNotLast { pattern: pattern.to_owned() });
                }
                ">" => Element::Rest,
                name if name.contains(['*', '>']) => {
                    return Err(PatternError::PartOfElement {
                        pattern: pattern.to_owned(),
                        element: name.to_owned(),
                    });
                }
                name => Element::Name(name.to_owned()),
            });
        }
        // A name of the same form says what else can be wrong.
        let name: Vec<_> =
            parts.iter().map(|part| if matches!(*part, "*" | ">") { "x" } else { part }).collect();
        match Destination::parse(&name.join("."), kind) {
            Ok(destination) if destination.consumer_prefetch().is_none() => Ok(Self { kind, elements }),
            Ok(_) => Err(PatternError::Options { pattern: pattern.to_owned() }),
            Err(source) => Err(PatternError::Name(source)),
        }
    }

    /// Whether a destination fits; a temporary one fits none.
    #[must_use]
    pub fn fits(&self, destination: &Destination) -> bool {
        if destination.kind() != self.kind {
            return false;
        }
        let mut names = destination.name().split('.');
        for element in &self.elements {
            match element {
                Element::Rest => return true,
                Element::One if names.next().is_some() => {}
                Element::Name(name) if names.next() == Some(name) => {}
                Element::One | Element::Name(_) => return false,
            }
        }
        names.next().is_none()
    }

    /// Whether this one holds, of two that fit the same name.
    #[must_use]
    pub fn is_more_specific_than(&self, other: &Self) -> bool {
        let rank = |element: Option<&Element>| match element {
            Some(Element::Name(_)) => 0,
            None => 1,
            Some(Element::One) => 2,
            Some(Element::Rest) => 3,
        };
        let ranks = |pattern: &Self| -> Vec<u8> {
            // The place behind the last element is where it ends.
            (0..=pattern.elements.len()).map(|place| rank(pattern.elements.get(place))).collect()
        };
        ranks(self) < ranks(other)
    }
}

impl fmt::Display for DestinationPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.kind.scheme())?;
        for (place, element) in self.elements.iter().enumerate() {
            if place > 0 {
                f.write_str(".")?;
            }
            f.write_str(match element {
                Element::Name(name) => name,
                Element::One => "*",
                Element::Rest => ">",
            })?;
        }
        Ok(())
    }
}

/// Why a text is no pattern.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternError {
    /// A wildcard that is part of an element only.
    #[error(
        "`{pattern}` has `{element}`; expected `*` or `>` alone between dots, as in `orders.*` or `orders.>`"
    )]
    PartOfElement {
        /// The pattern.
        pattern: String,
        /// The element.
        element: String,
    },
    /// Something behind what stands for all further elements.
    #[error(
        "`{pattern}` has something behind `>`, which stands for all further elements; expected it at the end"
    )]
    RestNotLast {
        /// The pattern.
        pattern: String,
    },
    /// The kind of a destination in front of it.
    #[error("`{pattern}` begins with the kind of a destination; expected what is behind it alone, `{name}`")]
    Kind {
        /// The pattern.
        pattern: String,
        /// What is behind the kind.
        name: String,
    },
    /// Options, which belong to one consumer's destination.
    #[error("`{pattern}` has options; expected the name of a destination, or `*` and `>` in it")]
    Options {
        /// The pattern.
        pattern: String,
    },
    /// The rest of it can be no name.
    #[error(transparent)]
    Name(DestinationError),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> DestinationPattern {
        DestinationPattern::queue(text).unwrap()
    }

    #[test]
    fn wildcards_stand_for_whole_elements() {
        for (text, fitting, others) in [
            ("orders", &["orders"][..], &["orders.eu", "order", "Orders"][..]),
            ("orders.*", &["orders.eu", "orders.us"], &["orders", "orders.eu.de", "returns.eu"]),
            ("*.eu", &["orders.eu"], &["eu", "orders.us"]),
            ("orders.>", &["orders", "orders.eu", "orders.eu.de"], &["ordersx", "x.orders"]),
            (">", &["orders", "orders.eu.de"], &[]),
            ("a.*.>", &["a.b", "a.b.c.d"], &["a", "b.a"]),
        ] {
            let pattern = pattern(text);
            assert_eq!(pattern.to_string(), format!("queue://{text}"));
            let fits = |name: &&&str| pattern.fits(&Destination::queue(name).unwrap());
            assert_eq!(fitting.iter().filter(fits).count(), fitting.len(), "{text}");
            assert_eq!(others.iter().filter(fits).count(), 0, "{text}");
        }
        assert!(!pattern(">").fits(&Destination::topic("orders").unwrap()));
        let temporary = Destination::temporary(DestinationKind::Queue, "ID:a:1").unwrap();
        assert!(!pattern(">").fits(&temporary), "what ends with a connection fits none");
    }

    #[test]
    fn of_patterns_that_fit_the_same_name_the_more_specific_one_names_more_from_the_left() {
        for order in [
            &["orders.eu", "orders.*", "orders.>", "*.eu", "*.*", "*.>", ">"][..],
            &["orders", "orders.>", "*", "*.>", ">"],
            &["orders.eu.de", "orders.eu.*", "orders.eu.>", "orders.*.de", "orders.>", "*.eu.de"],
        ] {
            for (place, one) in order.iter().enumerate() {
                for (other_place, other) in order.iter().enumerate() {
                    let is_before = pattern(one).is_more_specific_than(&pattern(other));
                    assert_eq!(is_before, place < other_place, "{one}, {other}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused_in_words() {
        for (text, expected) in [
            ("orders*", "`orders*` has `orders*`; expected `*` or `>` alone between dots"),
            ("a.>b", "`a.>b` has `>b`"),
            (">.a", "`>.a` has something behind `>`"),
            (
                "topic://a.>",
                "`topic://a.>` begins with the kind of a destination; expected what is behind it alone, `a.>`",
            ),
            ("temp-queue://a", "`temp-queue://a` begins with the kind of a destination"),
            ("orders?consumer.prefetchSize=5", "`orders?consumer.prefetchSize=5` has options"),
        ] {
            let error = DestinationPattern::topic(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        assert!(matches!(DestinationPattern::queue(""), Err(PatternError::Name(_))));
    }
}

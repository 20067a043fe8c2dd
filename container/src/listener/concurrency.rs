//! How many workers a listener has.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

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
            return Err(ConcurrencyError::Reversed { text: text.into(), lower, upper });
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
    #[error(
        "concurrency `{text}` has its lower bound above its upper one; did you mean \"{upper}-{lower}\"?"
    )]
    Reversed {
        /// The text.
        text: String,
        /// The bound that stands first.
        lower: usize,
        /// The one behind it.
        upper: usize,
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

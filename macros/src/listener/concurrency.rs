//! The value of `concurrency`.

use darling::{Error, FromMeta, Result};

/// Bounds of the number of workers. The same rules as the container's own, which this crate stands below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Concurrency {
    pub(super) lower: usize,
    pub(super) upper: usize,
}

impl FromMeta for Concurrency {
    fn from_string(text: &str) -> Result<Self> {
        let number = |part: &str| -> Option<usize> {
            // `parse` alone would take a sign.
            part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok()).flatten()
        };
        let bounds = match text.split_once('-') {
            Some((lower, upper)) => number(lower).zip(number(upper)),
            None => number(text).map(|upper| (1, upper)),
        };
        let refuse = |reason: &str| Err(Error::custom(format!("concurrency `{text}` {reason}")));
        match bounds {
            None => {
                refuse("cannot be read; expected bounds such as \"2-8\", or an upper bound such as \"8\"")
            }
            Some((0, _) | (_, 0)) => refuse("allows no worker; expected bounds of at least 1"),
            Some((lower, upper)) if lower > upper => {
                refuse(&format!("has its lower bound above its upper one; did you mean \"{upper}-{lower}\"?"))
            }
            Some((lower, upper)) => Ok(Self { lower, upper }),
        }
    }
}

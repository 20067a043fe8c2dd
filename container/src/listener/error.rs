//! How a listener fails, and what becomes of the message.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

/// The failure of a listener and what is to become of the message.
///
/// Any error turns into one by `?`, which means: deliver it again, by the redelivery policy of its queue. The other
/// ends are chosen with [`OrListenerError`]. It is no [`std::error::Error`] itself; that is what lets `?` take them all.
pub struct ListenerError {
    disposition: Disposition,
    source: Box<dyn StdError + Send + Sync>,
}

/// What becomes of a message that a listener failed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disposition {
    /// Delivered again, until the policy's limit, after the policy's delay or this one.
    Redeliver {
        /// Instead of the policy's delay.
        delay: Option<Duration>,
    },
    /// To the dead letter queue at once.
    DeadLetter,
    /// Settled without having been handled.
    Discard,
}

impl ListenerError {
    /// A failure with this end for the message.
    #[must_use]
    pub fn new(disposition: Disposition, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { disposition, source: source.into() }
    }

    /// A failure that may pass: the message is delivered again by the policy of its queue.
    #[must_use]
    pub fn redeliver(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(Disposition::Redeliver { delay: None }, source)
    }

    /// A failure that may pass: the message is delivered again after `delay`, which counts like any failure.
    #[must_use]
    pub fn retry_after(delay: Duration, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(Disposition::Redeliver { delay: Some(delay) }, source)
    }

    /// A failure that another delivery would not change: the message goes to the dead letter queue.
    #[must_use]
    pub fn dead_letter(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(Disposition::DeadLetter, source)
    }

    /// A failure that nobody needs to look at: the message is settled.
    #[must_use]
    pub fn discard(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(Disposition::Discard, source)
    }

    /// What is to become of the message.
    #[must_use]
    pub fn disposition(&self) -> Disposition {
        self.disposition
    }

    /// The failure.
    #[must_use]
    pub fn source(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.source
    }

    /// The failure with everything that caused it, in one line.
    #[must_use]
    pub fn chain(&self) -> String {
        let mut text = self.source.to_string();
        let mut cause = self.source.source();
        while let Some(error) = cause {
            let next = error.to_string();
            // Many errors end with the text of their source already.
            if !text.ends_with(&next) {
                text.push_str(": ");
                text.push_str(&next);
            }
            cause = error.source();
        }
        text
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for ListenerError {
    fn from(error: E) -> Self {
        Self::redeliver(error)
    }
}

/// What may be the error of a `#[jms_listener]` function: any [`std::error::Error`], and [`ListenerError`] itself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a `#[jms_listener]` function",
    label = "neither `ListenerError` nor a `std::error::Error + Send + Sync + 'static`",
    note = "return `Result<_, ListenerError>` and class other errors with `.or_redeliver()`, `.or_dead_letter()` and so on"
)]
pub trait IntoListenerError {
    /// The error with what is to become of the message.
    fn into_listener_error(self) -> ListenerError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<ListenerError>> IntoListenerError for E {
    fn into_listener_error(self) -> ListenerError {
        self.into()
    }
}

impl From<ListenerError> for Box<dyn StdError + Send + Sync> {
    fn from(error: ListenerError) -> Self {
        error.source
    }
}

impl From<ListenerError> for Box<dyn StdError> {
    fn from(error: ListenerError) -> Self {
        error.source
    }
}

impl fmt::Display for ListenerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.chain())
    }
}

impl fmt::Debug for ListenerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenerError")
            .field("disposition", &self.disposition)
            .field("source", &self.source)
            .finish()
    }
}

/// Says what becomes of the message when this `Result` is an error.
///
/// ```
/// use corriere_container::listener::{ListenerError, OrListenerError, secs};
///
/// fn total(text: &str) -> Result<u64, ListenerError> {
///     text.parse::<u64>().or_dead_letter()
/// }
///
/// fn fetch(answer: Result<u64, std::io::Error>) -> Result<u64, ListenerError> {
///     answer.or_retry_after(secs(5))
/// }
/// # assert!(total("x").is_err() && fetch(Ok(1)).is_ok());
/// ```
pub trait OrListenerError<T> {
    /// Delivered again by the policy of its queue, as with a plain `?`; also for errors that are no
    /// [`std::error::Error`], such as a `String`.
    ///
    /// # Errors
    /// The error, classed.
    fn or_redeliver(self) -> Result<T, ListenerError>;

    /// Delivered again after `delay`; counts like any failure.
    ///
    /// # Errors
    /// The error, classed.
    fn or_retry_after(self, delay: Duration) -> Result<T, ListenerError>;

    /// To the dead letter queue at once.
    ///
    /// # Errors
    /// The error, classed.
    fn or_dead_letter(self) -> Result<T, ListenerError>;

    /// Settled without having been handled.
    ///
    /// # Errors
    /// The error, classed.
    fn or_discard(self) -> Result<T, ListenerError>;
}

impl<T, E: Into<Box<dyn StdError + Send + Sync>>> OrListenerError<T> for Result<T, E> {
    fn or_redeliver(self) -> Result<T, ListenerError> {
        self.map_err(ListenerError::redeliver)
    }

    fn or_retry_after(self, delay: Duration) -> Result<T, ListenerError> {
        self.map_err(|error| ListenerError::retry_after(delay, error))
    }

    fn or_dead_letter(self) -> Result<T, ListenerError> {
        self.map_err(ListenerError::dead_letter)
    }

    fn or_discard(self) -> Result<T, ListenerError> {
        self.map_err(ListenerError::discard)
    }
}

/// This many seconds.
#[must_use]
pub const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the total is no number")]
    struct Total(#[source] std::num::ParseIntError);

    fn parse() -> Result<u8, Total> {
        "x".parse().map_err(Total)
    }

    #[test]
    fn a_plain_question_mark_means_redeliver() {
        fn handler() -> Result<(), ListenerError> {
            parse()?;
            Ok(())
        }
        let error = handler().unwrap_err();
        assert_eq!(error.disposition(), Disposition::Redeliver { delay: None });
        assert_eq!(error.chain(), "the total is no number: invalid digit found in string");
    }

    #[test]
    fn a_class_once_chosen_survives_the_question_mark() {
        fn handler() -> Result<(), ListenerError> {
            parse().or_retry_after(secs(5))?;
            Ok(())
        }
        let delay = Some(Duration::from_secs(5));
        assert_eq!(handler().unwrap_err().disposition(), Disposition::Redeliver { delay });
        assert_eq!(parse().or_dead_letter().unwrap_err().disposition(), Disposition::DeadLetter);
        assert_eq!(Err::<(), _>("no more").or_discard().unwrap_err().disposition(), Disposition::Discard);
    }
}

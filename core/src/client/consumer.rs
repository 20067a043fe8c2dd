//! Consumers.

use std::time::Duration;

use super::Delivery;
use crate::error::Error;

/// Receives messages. Dropping it closes it; what it had not handed over returns to its destination, uncounted.
#[derive(Debug)]
pub struct Consumer;

impl Consumer {
    /// Waits for a message as long as it takes; `None` when the consumer is closed meanwhile. In AUTO the message is
    /// acknowledged as it is returned. Dropping the future neither loses nor counts a message.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed or when a message listener is set; the connection's end.
    pub async fn receive(&self) -> Result<Option<Delivery>, Error> {
        todo!()
    }

    /// Waits for a message up to `timeout`; zero does not wait.
    ///
    /// # Errors
    /// As [`Consumer::receive`].
    pub async fn receive_timeout(&self, _timeout: Duration) -> Result<Option<Delivery>, Error> {
        todo!()
    }

    /// Takes a message if one is there.
    ///
    /// # Errors
    /// As [`Consumer::receive`].
    pub async fn receive_no_wait(&self) -> Result<Option<Delivery>, Error> {
        todo!()
    }

    /// As [`Consumer::receive`], but nothing is acknowledged: the caller settles with [`Delivery::acknowledge`] or
    /// [`Delivery::release`]. Listener containers and converting receives are made of this.
    ///
    /// # Errors
    /// As [`Consumer::receive`].
    pub async fn take(&self) -> Result<Option<Delivery>, Error> {
        todo!()
    }

    /// [`Consumer::take`] up to `timeout`; zero does not wait.
    ///
    /// # Errors
    /// As [`Consumer::receive`].
    pub async fn take_timeout(&self, _timeout: Duration) -> Result<Option<Delivery>, Error> {
        todo!()
    }

    /// The messages as a stream of [`Consumer::receive`]; it ends when the consumer is closed.
    pub fn stream(&self) -> impl futures_core::Stream<Item = Result<Delivery, Error>> + '_ {
        Never
    }

    /// Calls `listener` for each message from now on; receive is an error after that. AUTO acknowledges after it returned
    /// `Ok`; `Err` or a panic gives the message back.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed or when a listener is set already.
    pub fn set_message_listener<F, R>(&self, _listener: F) -> Result<(), Error>
    where
        F: Fn(Delivery) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    {
        todo!()
    }

    /// Whether messages wait in the buffer.
    #[must_use]
    pub fn has_backlog(&self) -> bool {
        todo!()
    }

    /// Closes the consumer, waiting for its listener if that is at work elsewhere. A second close is silent.
    ///
    /// # Errors
    /// When the broker does not confirm.
    pub async fn close(&self) -> Result<(), Error> {
        todo!()
    }
}

struct Never;
impl futures_core::Stream for Never {
    type Item = Result<Delivery, Error>;
    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        _cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        todo!()
    }
}

//! Browsers.

use std::sync::Arc;

use super::Session;
use super::buffer::{Buffer, End};
use crate::error::Error;
use crate::id::SubscriptionId;
use crate::message::Message;
use crate::provider::{Command, Dispatch};

/// Shows what was pending in a queue when it was made, in the order of delivery, messages that consumers have and such that
/// wait for their time included; what is gone before its turn is left out. Nothing is consumed, counted or changed.
/// It needs no started connection.
///
/// A bounded number of messages is fetched ahead. Dropping it closes it; it keeps its session open.
#[derive(Debug)]
pub struct QueueBrowser {
    session: Session,
    subscription: SubscriptionId,
    buffer: Arc<Buffer>,
    credit: u32,
    /// How much of the credit is used by what was handed over.
    used: u32,
}

impl QueueBrowser {
    pub(super) fn new(
        session: Session,
        subscription: SubscriptionId,
        buffer: Arc<Buffer>,
        credit: u32,
    ) -> Self {
        Self { session, subscription, buffer, credit, used: 0 }
    }

    /// The next message; `None` after the last one, or when the browser is closed meanwhile. Dropping the future loses
    /// nothing.
    ///
    /// # Errors
    /// [`Error::IllegalState`] when closed; the connection's end.
    pub async fn next(&mut self) -> Result<Option<Message>, Error> {
        const OPERATION: &str = "browse";
        self.session.inner().check_open(OPERATION)?;
        if let Some(End::Closed) = self.buffer.ended() {
            return Err(Error::closed(OPERATION, "browser"));
        }
        let buffer = Arc::clone(&self.buffer);
        loop {
            let changed = buffer.changed().notified();
            tokio::pin!(changed);
            // From here on no change is missed, so what the buffer says now stays true until `changed` completes.
            changed.as_mut().enable();
            // Asked before the last message is taken: once it is complete nothing more comes into it.
            let is_complete = buffer.is_complete();
            match buffer.pop() {
                Ok(Some(dispatch)) => {
                    if let Some(message) = self.hand_over(dispatch) {
                        return Ok(Some(message));
                    }
                    continue;
                }
                Ok(None) if is_complete => return Ok(None),
                Ok(None) => {}
                Err(End::Closed) => return Ok(None),
                Err(End::Failed(error)) => return Err(error.into()),
            }
            changed.await;
        }
    }

    /// Closes the browser. A second close is silent.
    ///
    /// # Errors
    /// When the broker does not confirm.
    pub async fn close(&self) -> Result<(), Error> {
        match self.session.inner().close_subscription(self.subscription) {
            Some(receipt) => super::confirm_close(receipt).await,
            None => Ok(()),
        }
    }

    /// The message, unless it has expired on its way; lets more come when half of the credit is used.
    fn hand_over(&mut self, dispatch: Dispatch) -> Option<Message> {
        let connection = self.session.inner().connection();
        self.used += 1;
        if self.used >= self.credit.div_ceil(2) {
            let credit = std::mem::take(&mut self.used);
            drop(connection.submit(Command::Grant { subscription: self.subscription, credit }));
        }
        let Dispatch { message, delivery_count, .. } = dispatch;
        let has_expired = message.headers().is_expired(connection.clock().now());
        (!has_expired).then(|| Arc::unwrap_or_clone(message).received(delivery_count))
    }
}

impl Drop for QueueBrowser {
    fn drop(&mut self) {
        // Nobody is left who could wait for the confirmation.
        drop(self.session.inner().close_subscription(self.subscription));
    }
}

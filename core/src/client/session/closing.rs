//! The end of a session.

use std::sync::atomic::Ordering;

use super::super::buffer::lock;
use super::{CLOSED, CLOSING, OPEN, SessionInner};
use crate::error::Error;
use crate::id::SubscriptionId;
use crate::provider::{Command, Receipt};

impl SessionInner {
    /// From here on nothing is handed over any more.
    pub(in crate::client) fn begin_close(&self) {
        // A session that is closing or closed stays as it is.
        let _ = self.phase.compare_exchange(OPEN, CLOSING, Ordering::AcqRel, Ordering::Acquire);
        for handed_over in lock(&self.state).subscriptions.values() {
            handed_over.end();
        }
    }

    pub(in crate::client) async fn close(&self) -> Result<(), Error> {
        self.begin_close();
        self.handlers.wait_until_idle().await;
        if self.phase.swap(CLOSED, Ordering::AcqRel) == CLOSED {
            return Ok(());
        }
        match self.submit_close().await {
            // With the connection everything of this session is gone already.
            Err(error) if !error.ends_connection() => Err(error.into()),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    pub(super) fn submit_close(&self) -> Receipt {
        let subscriptions: Vec<SubscriptionId> = {
            let mut state = lock(&self.state);
            if let Some(transaction) = state.transaction.take() {
                drop(self.connection.submit(Command::Rollback { transaction, cause: None }));
            }
            state.subscriptions.keys().copied().collect()
        };
        for subscription in subscriptions {
            drop(self.close_subscription(subscription));
        }
        self.connection.forget_session(self.id);
        self.connection.submit(Command::CloseSession { session: self.id })
    }
}

impl Drop for SessionInner {
    fn drop(&mut self) {
        if *self.phase.get_mut() != CLOSED {
            // Nobody is left who could wait for the confirmation.
            drop(self.submit_close());
        }
    }
}

//! What an operator does with a queue of the embedded broker.

use std::sync::Arc;

use corriere_core::provider::ProviderError;
use corriere_core::{Destination, Message};

use crate::browse::Browse;
use crate::counts::Counts;
use crate::edge::Edge;
use crate::machine::{Action, Order};
use crate::operation_counts::OperationCounts;
use crate::store::Totals;

/// How many messages are done at once, and how many bytes of them, one of any size apart.
const AT_ONCE: usize = 128;
const BYTES_AT_ONCE: usize = 1024 * 1024;

/// A queue of a broker in this process, for its operator. It keeps the broker alive.
///
/// What is done with messages is done with those that are there when it begins: what comes meanwhile is left alone, so that a
/// retry ends although consumers fail again. They go to the filter one by one, in the order of delivery, those that wait for
/// their redelivery included; bodies that are with the store only are read back a few at a time. [`all`] is the filter that
/// chooses every message. What a consumer has, or an open transaction, is left alone and counted.
///
/// Each message is purged or moved whole or not at all, also over a crash: none is lost, and none is in two queues. When the
/// future ends, what is done is as safe as an acknowledgement (a purge) or a send (all else). Dropping it leaves undone
/// what was not begun; up to 128 messages may be under way.
#[derive(Clone, Debug)]
pub struct QueueHandle {
    edge: Arc<Edge>,
    queue: Destination,
}

/// The filter that chooses every message: `queue.purge(all)`.
#[must_use]
pub fn all(_: &Message) -> bool {
    true
}

impl QueueHandle {
    pub(crate) fn new(edge: Arc<Edge>, queue: Destination) -> Self {
        Self { edge, queue }
    }

    /// The queue.
    #[must_use]
    pub fn destination(&self) -> &Destination {
        &self.queue
    }

    /// What became of its messages in this run of the broker.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.edge.query(|machine| machine.counts(&self.queue)).unwrap_or_default()
    }

    /// What became of its persistent messages since its store was made.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.edge.query(|machine| machine.totals(&self.queue)).unwrap_or_default()
    }

    /// Looks at what is pending now, without touching it.
    #[must_use]
    pub fn browse(&self) -> Browse {
        Browse::new(Arc::clone(&self.edge), self.queue.clone())
    }

    /// Removes the messages that the filter chooses.
    ///
    /// # Errors
    /// [`QueueError::Broker`] when the broker or its store ended meanwhile; some of it may be done.
    pub async fn purge(&self, filter: impl Fn(&Message) -> bool) -> Result<OperationCounts, QueueError> {
        self.manage(Action::Purge, filter).await
    }

    /// Brings the dead letters that the filter chooses back to where they came from: to the queue, or to all who are
    /// subscribed to the topic now, which may be others than the one that failed.
    ///
    /// Each begins anew there, behind all others: with count 1, without what it said of its death, and without the expiration
    /// that it had once, which is over in most cases. So it can fail, and become a dead letter, as any other.
    /// What does not say where it came from stays, and is counted.
    ///
    /// # Errors
    /// As [`QueueHandle::purge`].
    pub async fn retry(&self, filter: impl Fn(&Message) -> bool) -> Result<OperationCounts, QueueError> {
        self.manage(Action::Retry, filter).await
    }

    /// Moves the messages that the filter chooses to a queue, which is made if it is not there, or to all who are subscribed to
    /// a topic. Each begins anew there, behind all others, and with that destination in its headers; the rest stays as it is.
    ///
    /// # Errors
    /// As [`QueueHandle::purge`].
    pub async fn move_to(
        &self,
        destination: &Destination,
        filter: impl Fn(&Message) -> bool,
    ) -> Result<OperationCounts, QueueError> {
        self.manage(Action::Move(destination.clone()), filter).await
    }

    /// Brings copies of the messages that the filter chooses, those that consumers have among them, to a queue or a topic, as
    /// [`QueueHandle::move_to`] does. Copies need memory, as what is sent does.
    ///
    /// # Errors
    /// As [`QueueHandle::purge`].
    pub async fn copy_to(
        &self,
        destination: &Destination,
        filter: impl Fn(&Message) -> bool,
    ) -> Result<OperationCounts, QueueError> {
        self.manage(Action::Copy(destination.clone()), filter).await
    }

    /// Changes how many messages are sent ahead to consumers to whose prefetch neither they nor their connection factory have
    /// said anything, those that are open included; until the broker ends. 0 counts as 1. What a consumer has beyond a
    /// smaller window it keeps.
    pub fn set_prefetch(&self, prefetch: u32) {
        self.edge.set_prefetch(self.queue.clone(), prefetch);
    }

    async fn manage(
        &self,
        action: Action,
        filter: impl Fn(&Message) -> bool,
    ) -> Result<OperationCounts, QueueError> {
        let mut outcome = OperationCounts::default();
        let mut browse = self.browse();
        let mut is_over = false;
        while !is_over {
            let (mut messages, mut bytes) = (Vec::new(), 0);
            while !is_over && messages.len() < AT_ONCE && bytes < BYTES_AT_ONCE {
                match browse.next_found().await {
                    Some((location, Ok(message))) => {
                        if filter(&message) {
                            bytes += message.size();
                            messages.push((location, message));
                        }
                    }
                    Some((_, Err(_))) => outcome.unreadable += 1,
                    None => is_over = true,
                }
            }
            if !messages.is_empty() {
                let order = Order { queue: self.queue.clone(), action: action.clone(), messages };
                outcome.add(&self.edge.manage(order).await?);
            }
        }
        Ok(outcome)
    }
}

/// Why nothing, or not all, was done with a queue.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueError {
    /// There is none of that name.
    #[error("broker `{broker}` has no queue `{queue}`{}", nearest.as_ref().map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default())]
    Unknown {
        /// The broker.
        broker: String,
        /// The name.
        queue: String,
        /// The name that it was most likely meant to be.
        nearest: Option<String>,
    },
    /// The broker, or its store, ended meanwhile.
    #[error(transparent)]
    Broker(#[from] ProviderError),
}

//! Where messages go that cannot be delivered.

use std::sync::Arc;

use corriere_core::provider::Cause;
use corriere_core::{Destination, Message, RedeliveryPolicy, Value};

use super::Machine;
use super::delivery::{Delay, Failure};
use super::queue::{Position, QueueKey};
use crate::settings::{DeadLetters, Settings};
use crate::store::Removal;

/// The queue that ActiveMQ's shared strategy uses.
const SHARED: &str = "ActiveMQ.DLQ";
/// What names of individual dead letter queues begin with.
const INDIVIDUAL: &str = "DLQ.";

/// Whether a queue of this name holds dead letters.
pub(super) fn holds_dead_letters(settings: &Settings, name: &str) -> bool {
    settings.all_dead_letters().any(|dead_letters| match dead_letters {
        DeadLetters::Individual => name.starts_with(INDIVIDUAL) || name == SHARED,
        DeadLetters::Shared => name == SHARED,
        DeadLetters::Discard => false,
    })
}

/// The queue for dead letters from `source`; `None` when they are dropped, as all are of what ends with a connection.
fn queue_for(dead_letters: DeadLetters, source: &Destination) -> Option<String> {
    if source.is_temporary() {
        return None;
    }
    // The prefixes are not counted against the length of a name, so every destination can have its own.
    Some(match dead_letters {
        DeadLetters::Individual if source.is_topic() => format!("{INDIVIDUAL}topic.{}", source.name()),
        DeadLetters::Individual => format!("{INDIVIDUAL}{}", source.name()),
        DeadLetters::Shared => SHARED.to_owned(),
        DeadLetters::Discard => return None,
    })
}

impl Machine {
    /// Ends a message that failed for good: a copy goes to the dead letters in the same batch as its removal.
    pub(super) fn dead_letter(&mut self, queue_key: QueueKey, position: Position, cause: &Cause) {
        if self.lacks_body_for_copy(queue_key, position) {
            self.doom(queue_key, position, Some(cause.clone()));
            return;
        }
        let copy = self.dead_letter_copy(queue_key, position, cause);
        let reason = if copy.is_some() { Removal::DeadLettered } else { Removal::Discarded };
        let is_stored = self.stored(queue_key, position).is_some();
        if let Some(queue) = self.queues.get_mut(&queue_key) {
            match reason {
                Removal::DeadLettered => {
                    queue.counts.dead_lettered += 1;
                    queue.totals.dead_lettered += u64::from(is_stored);
                }
                _ => queue.counts.discarded += 1,
            }
        }
        self.leave(queue_key, position, reason, copy, Some(cause));
    }

    /// Ends a delivery after which the message is never to be delivered again. On a queue of dead letters, where it
    /// has nowhere to go, it comes back instead.
    pub(super) fn condemn(
        &mut self,
        queue_key: QueueKey,
        position: Position,
        cause: &Cause,
        policy: &RedeliveryPolicy,
    ) {
        let Some(queue) = self.queues.get_mut(&queue_key) else { return };
        if queue.holds_dead_letters {
            let failure = Failure { cause, policy, delay: Delay::Policy, reserved_for: None };
            self.give_back_failed(queue_key, position, &failure);
            return;
        }
        if let Some(entry) = queue.get_mut(position) {
            entry.failed_deliveries = entry.failed_deliveries.saturating_add(1);
            self.dead_letter(queue_key, position, cause);
        }
    }

    /// Ends a message that cannot be given to its consumer, uncounted. On a queue of dead letters, where it has nowhere to go, it
    /// waits, as the same consumer may be the only one there.
    pub(super) fn cannot_deliver(
        &mut self,
        queue_key: QueueKey,
        position: Position,
        cause: &Cause,
        policy: &RedeliveryPolicy,
    ) {
        if self.queues.get(&queue_key).is_some_and(|queue| queue.holds_dead_letters) {
            self.delay_unseen(queue_key, position, policy);
        } else {
            self.dead_letter(queue_key, position, cause);
        }
    }

    /// Ends a message that its consumer says has expired; its clock may be ahead of ours. What cannot expire at all is
    /// taken back instead, as it never reached the application.
    pub(super) fn believe_expired(&mut self, queue_key: QueueKey, position: Position) {
        let entry = self.queues.get(&queue_key).and_then(|queue| queue.get(position));
        if entry.is_some_and(|entry| entry.held.expiration().is_some()) {
            self.expire(queue_key, position);
        } else {
            self.give_back_unseen(queue_key, position, None);
        }
    }

    /// Ends a message that is past its expiration.
    pub(super) fn expire(&mut self, queue_key: QueueKey, position: Position) {
        if self.lacks_body_for_copy(queue_key, position) {
            self.doom(queue_key, position, None);
            return;
        }
        let Some(queue) = self.queues.get_mut(&queue_key) else { return };
        let Some(entry) = queue.get(position) else { return };
        let expiration = entry.held.expiration().unwrap_or_default();
        queue.counts.expired += 1;
        let copy = if queue.holds_dead_letters {
            None
        } else {
            let cause = if expiration > self.now {
                let early = expiration.since(self.now);
                format!("expired by the clock of its consumer, {early:?} early by that of the broker")
            } else {
                format!("expired {:?} ago", self.now.since(expiration))
            };
            self.dead_letter_copy(queue_key, position, &Cause::failure(cause))
        };
        self.leave(queue_key, position, Removal::Expired, copy, None);
    }

    /// Whether a message is to become a dead letter, if it dies, and its body has to be read back for that.
    fn lacks_body_for_copy(&self, queue_key: QueueKey, position: Position) -> bool {
        let Some(queue) = self.queues.get(&queue_key) else { return false };
        queue.get(position).is_some_and(|entry| entry.held.body().is_none())
            && !queue.holds_dead_letters
            && queue.policy.dead_letters != DeadLetters::Discard
    }

    /// What a message becomes as a dead letter, and where; `None` when it is to be dropped.
    fn dead_letter_copy(
        &mut self,
        queue_key: QueueKey,
        position: Position,
        cause: &Cause,
    ) -> Option<(QueueKey, Message)> {
        let queue = self.queues.get(&queue_key)?;
        let entry = queue.get(position)?;
        let original = entry.held.body()?;
        if !entry.held.is_persistent && !queue.policy.dead_letter_non_persistent {
            return None;
        }
        let target = queue_for(queue.policy.dead_letters, &queue.destination)?;
        let mut copy = Message::clone(original);
        let deliveries = i32::try_from(entry.failed_deliveries).unwrap_or(i32::MAX);
        let now = i64::try_from(self.now.0).unwrap_or(i64::MAX);
        let expiration = copy.headers_mut().expiration.take();
        let properties = copy.properties_mut_unchecked();
        // One that was sent again may still say how it died before.
        properties.remove("dlqListener");
        properties.remove("dlqOriginalExpiration");
        properties.set_unchecked("dlqDeliveryFailureCause", Value::String(Arc::clone(&cause.text)));
        properties
            .set_unchecked("dlqOriginalDestination", Value::String(queue.destination.to_string().into()));
        properties.set_unchecked("dlqTime", Value::Long(now));
        properties.set_unchecked("JMSXDeliveryCount", Value::Int(deliveries));
        if let Some(listener) = &cause.listener {
            properties.set_unchecked("dlqListener", Value::String(Arc::clone(listener)));
        }
        if let Some(expiration) = expiration {
            let expiration = i64::try_from(expiration.0).unwrap_or(i64::MAX);
            properties.set_unchecked("dlqOriginalExpiration", Value::Long(expiration));
        }
        Some((self.queue_named(&target)?, copy))
    }
}

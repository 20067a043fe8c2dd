//! Judging what the machine did in a step.

use corriere_broker::machine::{BatchId, Effects, Machine};
use corriere_broker::store::{Arrival, Recipient, Removal, StoreOperation, StoreTransaction, StoredId};
use corriere_core::{Destination, Message, Timestamp};

use super::entry::{DeadLetter, Death, Place, id_of};
use super::session::{End, Origin};
use super::{Batch, Entering, Judgement, Model, violation};

impl Model {
    /// Judges the effects that the machine gave for the input that [`Model::take`] took last, and what it says of itself.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&mut self, effects: &Effects, machine: &Machine) -> Judgement {
        self.check_changes(effects)?;
        let before = if self.browsers.is_empty() { Vec::new() } else { self.entries.clone() };
        if effects.takes_sends != self.takes_sends {
            violation!(
                "whether the store takes sends again: {}, expected {}",
                effects.takes_sends,
                self.takes_sends
            );
        }
        for corriere_broker::machine::Batch { id, operations, .. } in &effects.store {
            self.batches.push(Batch { id: *id, operations: operations.clone() });
        }
        self.note_loads(effects)?;
        // How much memory is free for those who wait is known when the dead letters are, as they were written.
        self.settle_ends();
        self.bury_what_was_put_off(effects);
        if self.can_load {
            self.bury_what_killed_its_process(effects);
            self.match_entering(|origin| matches!(origin, Origin::Moved(_)))?;
            self.bring_what_was_copied(effects)?;
            self.admit_what_was(effects)?;
        } else {
            loop {
                self.match_entering(|origin| matches!(origin, Origin::Moved(_)))?;
                if !self.admit_first() {
                    break;
                }
            }
        }
        for corriere_broker::machine::Batch { id, operations, .. } in &effects.store {
            self.note_batch(*id, operations)?;
        }
        self.match_entering(|_| true)?;
        self.note_room();
        self.check_deliveries(effects)?;
        self.note_room();
        self.check_slow(effects)?;
        self.check_browsers(effects, &before)?;
        self.owe_served();
        for (ticket, outcome) in &effects.confirmations {
            self.tickets.answer(*ticket, outcome)?;
            self.browser_is_drained(*ticket);
        }
        self.check_managed(effects)?;
        self.forget_closed_subscriptions();
        self.tickets.check(self.batches.is_empty(), !self.loading.is_empty())?;
        self.check_wake(effects.wake_at)?;
        self.check_quiescence()?;
        self.check_fairness()?;
        self.check_memory(machine.memory_used())?;
        let subscriptions = machine.durable_subscriptions();
        self.check_durable(|recipient| match recipient {
            Recipient::Queue(queue) => machine.totals(queue),
            Recipient::Subscription(name) => {
                let is_it = |found: &&corriere_broker::DurableSubscription| {
                    found.client_id == name.client_id && found.name == name.name
                };
                subscriptions.iter().find(is_it).map(|found| found.totals)
            }
        })?;
        self.check_lasting(&subscriptions)?;
        self.check_counts(|destination| machine.counts(destination))
    }

    fn note_batch(&mut self, id: BatchId, operations: &[StoreOperation]) -> Judgement {
        let mut settles = false;
        for operation in operations {
            match operation {
                StoreOperation::Commit(_) | StoreOperation::Prepare(_) => {
                    let (transaction, end) = match operation {
                        StoreOperation::Prepare(xid) => {
                            (&StoreTransaction::Distributed(xid.clone()), End::Prepare)
                        }
                        StoreOperation::Commit(transaction) => (transaction, End::Commit),
                        _ => continue,
                    };
                    let key = self.transaction_key(transaction);
                    let Some(key) = key else { violation!("{operation:?} is of no open transaction") };
                    if self.waits_for_memory(&key) {
                        violation!("{key:?} is committed although a send of it waits for memory");
                    }
                    let asked = self
                        .transaction_mut(&key)
                        .filter(|transaction| transaction.end.is_some_and(|(_, asked)| asked == end));
                    let Some(transaction) = asked else { violation!("nobody asked for {operation:?}") };
                    transaction.end_batch = Some(id);
                }
                StoreOperation::Append { stored, queue, message, transaction: Some(transaction), .. } => {
                    let key = self.transaction_key(transaction);
                    let Some(key) = key else { violation!("{operation:?} is of no open transaction") };
                    self.note_transacted_append(&key, *stored, queue, message)?;
                }
                StoreOperation::Publish {
                    stored, topic, message, transaction: Some(transaction), ..
                } => {
                    let key = self.transaction_key(transaction);
                    let Some(key) = key else { violation!("{operation:?} is of no open transaction") };
                    self.note_transacted_append(&key, *stored, topic, message)?;
                }
                StoreOperation::CreateSubscription { subscription, .. } => {
                    self.note_making(subscription, id)?;
                }
                StoreOperation::RemoveSubscription(_)
                | StoreOperation::Remove { transaction: None, .. }
                | StoreOperation::DeliveryState { .. } => {
                    settles = true;
                }
                _ => {}
            }
        }
        // What is written must be written before the acknowledgement that wrote it is confirmed.
        if settles && let Some(ticket) = self.acknowledging {
            self.tickets.wait_for(ticket, id);
        }
        Ok(())
    }

    /// Only what a transaction sends is appended in its name.
    fn note_transacted_append(
        &mut self,
        key: &super::TransactionKey,
        stored: StoredId,
        queue: &Destination,
        message: &std::sync::Arc<Message>,
    ) -> Judgement {
        let send = self.transaction_mut(key).and_then(|transaction| {
            transaction.sends.iter_mut().find(|send| {
                send.stored.is_none()
                    && send.message == *message
                    && send.message.headers().destination.as_ref() == Some(queue)
            })
        });
        let is_sent = send.is_some();
        if let Some(send) = send {
            send.stored = Some(stored);
        }
        if !is_sent {
            violation!("{key:?} appends {} to {queue}, which it did not send", id_of(message));
        }
        Ok(())
    }

    /// Every persistent message on its way into a queue must be in a batch from the step in which it set out, a dead
    /// letter in the same batch that removes it from where it died.
    fn match_entering(&mut self, is_wanted: impl Fn(&Origin) -> bool) -> Judgement {
        let mut index = 0;
        while index < self.entering.len() {
            if self.entering[index].batch.is_some() || !is_wanted(&self.entering[index].origin) {
                index += 1;
                continue;
            }
            let entering = &self.entering[index];
            // One message of a topic may enter a dead letter queue once for each of its subscriptions.
            let taken_from = |batch: BatchId| {
                let same = |other: &&Entering| {
                    other.queue == entering.queue && id_of(&other.message) == id_of(&entering.message)
                };
                self.entering[..index].iter().filter(same).filter(|other| other.batch == Some(batch)).count()
            };
            // What left its queue is removed in the same batch.
            let was = entering.was.as_ref().filter(|was| was.is_stored()).and_then(|was| was.stored);
            let removes_it = |batch: &&Batch| {
                let is_it = |operation: &StoreOperation| matches!(operation, StoreOperation::Remove { stored, .. } if Some(*stored) == was);
                was.is_none() || batch.operations.iter().any(is_it)
            };
            let found = self.batches.iter().filter(removes_it).find_map(|batch| {
                let mut appended = batch.operations.iter().filter_map(|operation| match operation {
                    StoreOperation::Append { queue, message, transaction: None, .. }
                    | StoreOperation::Publish { topic: queue, message, transaction: None, .. }
                        if *queue == entering.queue && id_of(message) == id_of(&entering.message) =>
                    {
                        Some(message)
                    }
                    _ => None,
                });
                let appended = appended.nth(taken_from(batch.id))?;
                Some((batch, std::sync::Arc::clone(appended)))
            });
            let Some((batch, message)) = found else {
                let what = format!("{} for {}", id_of(&entering.message), entering.queue);
                if self.is_doomed(index) {
                    continue;
                }
                if self.entering[index].is_put_off {
                    index += 1;
                    continue;
                }
                violation!("{what} was not given to the store");
            };
            if entering.is_put_off
                && let Origin::Moved(letter) = &entering.origin
                && check_dead_letter(&message, letter).is_err()
            {
                // It is that of another subscription to the topic.
                index += 1;
                continue;
            }
            let mut carried = None;
            match &entering.origin {
                Origin::Sent(_) | Origin::Carried(..)
                    if !goes_to(&batch.operations, &message, &entering.copies) =>
                {
                    violation!("{} goes to others than {:?}", id_of(&message), entering.copies);
                }
                Origin::Sent(_) | Origin::Carried(..) if message != entering.message => {
                    violation!("another message is stored than the one that was sent: {message:?}");
                }
                Origin::Carried(ticket, arrival) => {
                    if !is_carried(&batch.operations, *arrival, was) {
                        violation!(
                            "{} is carried to {} otherwise: {batch:?}",
                            id_of(&message),
                            entering.queue
                        );
                    }
                    carried = Some(*ticket);
                }
                Origin::Moved(letter) => check_dead_letter(&message, letter)?,
                Origin::Sent(_) => {}
            }
            let id = batch.id;
            if let Some(ticket) = carried {
                self.tickets.wait_for(ticket, id);
            }
            self.entering[index].batch = Some(id);
            self.entering[index].message = message;
            index += 1;
        }
        Ok(())
    }
}

/// Whether what was sent is stored for these durable subscriptions.
fn goes_to(operations: &[StoreOperation], message: &std::sync::Arc<Message>, copies: &[Place]) -> bool {
    let names: Vec<_> = copies.iter().filter_map(Place::recipient).collect();
    operations.iter().all(|operation| match operation {
        StoreOperation::Publish { message: stored, subscriptions, .. }
            if std::sync::Arc::ptr_eq(stored, message) =>
        {
            subscriptions.iter().cloned().map(Recipient::Subscription).eq(names.iter().cloned())
        }
        _ => true,
    })
}

/// Whether a batch does nothing but bring a message so, and remove the one that it was.
fn is_carried(operations: &[StoreOperation], brought: Arrival, was: Option<StoredId>) -> bool {
    let removes = |operation: &StoreOperation| {
        matches!(operation, StoreOperation::Remove { stored, reason: Removal::MovedOut, transaction: None }
            if Some(*stored) == was)
    };
    let brings = |operation: &StoreOperation| operation.arrival() == Some(brought);
    operations.iter().filter(|operation| brings(operation)).count() == 1
        && operations.iter().filter(|operation| removes(operation)).count() == usize::from(was.is_some())
        && operations.iter().all(|operation| brings(operation) || removes(operation))
}

/// Judges the copy that lies in a dead letter queue.
pub(super) fn check_dead_letter(copy: &Message, letter: &DeadLetter) -> Judgement {
    let original = &letter.original;
    let id = id_of(original);
    if id_of(copy) != id || copy.body() != original.body() {
        violation!("the dead letter of {id} is not its copy: {copy:?}");
    }
    let (kept, of) = (copy.headers(), original.headers());
    if kept.priority != of.priority
        || kept.delivery_mode != of.delivery_mode
        || kept.timestamp != of.timestamp
        || kept.correlation_id != of.correlation_id
    {
        violation!("the dead letter of {id} has other headers: {kept:?}");
    }
    if kept.expiration.is_some() {
        violation!("the dead letter of {id} can expire");
    }
    let original_expiration = of.expiration.map(|expiration: Timestamp| expiration.0.to_string());
    expect_property(copy, "dlqOriginalExpiration", original_expiration.as_deref())?;
    expect_property(copy, "dlqOriginalDestination", Some(&letter.source.to_string()))?;
    expect_property(copy, "dlqTime", Some(&letter.at.0.to_string()))?;
    expect_property(copy, "JMSXDeliveryCount", Some(&letter.deliveries.to_string()))?;
    let cause = text_of(copy, "dlqDeliveryFailureCause").unwrap_or_default();
    let (is_named, listener) = match &letter.cause {
        Death::Expired => (cause.starts_with("expired"), None),
        Death::Failure(failure) => (cause.contains(&*failure.text), failure.listener.as_deref()),
        Death::Returned => (!cause.is_empty(), None),
    };
    if !is_named {
        violation!("the dead letter of {id} names the cause `{cause}` where it died of {:?}", letter.cause);
    }
    expect_property(copy, "dlqListener", listener)?;
    let added = ["dlq", "JMSXDeliveryCount"];
    for (name, value) in original.properties().iter() {
        let is_kept =
            added.iter().any(|prefix| name.starts_with(prefix)) || copy.properties().get(name) == Some(value);
        if !is_kept {
            violation!("the dead letter of {id} lost its property {name}");
        }
    }
    Ok(())
}

fn expect_property(copy: &Message, name: &str, expected: Option<&str>) -> Judgement {
    let found = text_of(copy, name);
    if found.as_deref() != expected {
        violation!("the dead letter of {} has {name} = {found:?}, expected {expected:?}", id_of(copy));
    }
    Ok(())
}

fn text_of(message: &Message, name: &str) -> Option<String> {
    use corriere_core::Value;
    message.properties().get(name).map(|value| match value {
        Value::Int(number) => number.to_string(),
        Value::Long(number) => number.to_string(),
        Value::String(text) => text.to_string(),
        other => format!("{other:?}"),
    })
}

//! What the store has answered: what becomes visible, and what does not.

use corriere_broker::machine::BatchId;
use corriere_broker::store::{Arrival, StoreError, StoreOperation, StoreTransaction, StoredId};
use corriere_core::{Destination, MessageId};

use super::entry::{Place, id_of};
use super::session::{Entering, Origin};
use super::{Answer, Model};

impl Model {
    /// The store answered a batch.
    pub(super) fn stored(&mut self, batch: &super::Batch, outcome: &Result<(), StoreError>) {
        let is_durable = outcome.is_ok();
        let is_full = matches!(outcome, Err(StoreError::Full { .. }));
        self.tickets.complete(batch.id);
        if is_durable {
            self.durable.apply(&batch.operations);
        }
        // Positions are given in the order of the journal.
        for operation in &batch.operations {
            let (transaction, is_end) = match operation {
                StoreOperation::Append { transaction: Some(transaction), .. }
                | StoreOperation::Publish { transaction: Some(transaction), .. }
                | StoreOperation::Remove { transaction: Some(transaction), .. } => {
                    (transaction.clone(), false)
                }
                StoreOperation::Commit(transaction) => (transaction.clone(), true),
                StoreOperation::Prepare(xid) => (StoreTransaction::Distributed(xid.clone()), true),
                StoreOperation::CreateSubscription { .. } => {
                    self.lasting_is_stored(batch.id);
                    continue;
                }
                StoreOperation::Append { stored, queue, message, .. }
                | StoreOperation::Publish { stored, topic: queue, message, .. } => {
                    self.appended(batch.id, *stored, (queue, &id_of(message)), (is_durable, is_full));
                    continue;
                }
                _ => continue,
            };
            let Some(key) = self.transaction_key(&transaction) else { continue };
            let is_prepared = self.transaction_mut(&key).is_some_and(|state| state.prepared.is_some());
            match (is_end, is_durable) {
                (true, true) => self.take_effect(&key),
                (true, false) if is_prepared => self.stay_prepared(&key),
                (true, false) => self.refuse_end(&key),
                (false, true) => self.note_written(&key, operation),
                (false, false) => self.condemn(&key),
            }
        }
    }

    /// A message that was on its way into a queue has arrived, or has failed to.
    fn appended(
        &mut self,
        batch: BatchId,
        stored: StoredId,
        (queue, id): (&Destination, &MessageId),
        (is_durable, is_full): (bool, bool),
    ) {
        let Some(index) = self.entering.iter().position(|entering| {
            entering.batch == Some(batch) && entering.queue == *queue && id_of(&entering.message) == *id
        }) else {
            return;
        };
        let Entering { message, instance, origin, resent, was, copies, .. } = self.entering.remove(index);
        let place = Place::Queue(queue.clone());
        if let Origin::Sent(first) = &origin {
            if is_full {
                self.count(queue).duplicates -= resent.len() as u64;
                if !self.store_is_full {
                    self.room_is_back = false;
                    self.wait_for_store();
                }
            }
            for parked in std::iter::once(&**first).chain(&resent) {
                if is_full {
                    self.wait_again(parked.clone());
                } else {
                    let answer = if is_durable { &Answer::Done } else { &Answer::Refused };
                    self.tickets.owe_if_heard(parked.ticket, answer);
                }
            }
        }
        match &origin {
            Origin::Sent(first) if is_durable => {
                self.note_sent(&message);
                let sender = Some(first.connection);
                self.publish(queue, &message, (instance, Some(stored)), (sender, Arrival::Sent), &copies);
            }
            Origin::Sent(_) => {}
            Origin::Moved(_) if !is_durable => {
                let moved = Entering {
                    queue: queue.clone(),
                    copies,
                    message,
                    instance,
                    origin,
                    batch: None,
                    resent,
                    was,
                    is_put_off: true,
                };
                self.put_off(moved);
            }
            Origin::Moved(letter) => {
                let letter = Some((**letter).clone());
                self.enter(place, message, (instance, Some(stored)), Arrival::MovedIn, letter);
            }
            Origin::Carried(ticket, _) if is_durable => {
                self.has_arrived(*ticket, &message, (instance, Some(stored)), &copies);
            }
            Origin::Carried(ticket, _) => self.turn_back(*ticket, was),
        }
    }
}

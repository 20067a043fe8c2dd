//! Bodies that are with the store only: which messages give theirs up, and when they are read back.
//!
//! - A stored message that nobody has gives up its body when more than half of the memory limit is used at the end of a
//!   step, or when a send would have to wait: those that became idle last go first. So the front of a queue stays at hand,
//!   and each message is looked at a bounded number of times between two deliveries of it.
//! - So does a message that a transaction sends, once the store has it, and before those on queues: nobody can want it yet.
//! - A body is read back for a consumer that has room, a bounded number ahead, and for a dead letter. What stands first in
//!   line waits for its body; a more urgent message that comes meanwhile passes it, others do not.
//! - A message whose body cannot be read back is set aside: it stays pending and stored, nobody gets it in this run, and the
//!   queue goes on without it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use corriere_core::provider::Cause;
use corriere_core::{Destination, Message};

use super::Machine;
use super::browser::Reading;
use super::queue::{Entry, Place, Position, Queue, QueueKey};
use super::subscription::Subscription;
use super::transaction::TransactionKey;
use crate::store::{StoreError, StoredId};

/// How many messages of a queue are read back at once.
const MOST_AT_ONCE: usize = 64;
/// Which part of the memory limit they may have together, one of any size apart.
const PART_OF_LIMIT: u64 = 8;
/// How many idle messages are noted before those are looked for that are idle no more.
const FEW: usize = 1_024;

/// A message that cannot be read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// Its queue.
    pub queue: Destination,
    /// Its name.
    pub stored: StoredId,
    /// Why not.
    pub error: StoreError,
}

/// What is known of bodies here and there.
#[derive(Debug, Default)]
pub(super) struct Bodies {
    /// Whether the store brings back what is given up.
    pub(super) can_load: bool,
    /// What became idle in this step.
    fresh: Vec<(QueueKey, Position)>,
    /// What lay idle at the end of a step with its body, the latest last. Some of it may be idle no more.
    idle: Vec<(QueueKey, Position)>,
    /// At how many `idle` is to be cleared of these.
    clear_at: usize,
    /// Transactions that send what the store has, and whose bodies may be here.
    pub(super) uncommitted: BTreeSet<TransactionKey>,
    under_way: BTreeMap<StoredId, (QueueKey, Position, u64)>,
    /// What is read back for browsers.
    pub(super) reading: Reading,
    /// What doomed messages die of, unless they are past their expiration.
    pub(super) causes: BTreeMap<(QueueKey, Position), Cause>,
}

impl Machine {
    /// Notes that a message became visible or came back.
    pub(super) fn note_idle(&mut self, queue_key: QueueKey, position: Position) {
        if self.bodies.can_load && self.queues.get(&queue_key).is_some_and(Queue::is_lasting) {
            self.bodies.fresh.push((queue_key, position));
        }
    }

    /// The end of a step: lets bodies go while more than half of the memory is used. Answers whether somebody who waits
    /// for memory may have it now.
    pub(super) fn shed_bodies(&mut self) -> bool {
        if !self.bodies.can_load {
            return false;
        }
        for (queue_key, position) in std::mem::take(&mut self.bodies.fresh) {
            if self.has_idle_body(queue_key, position) {
                self.bodies.idle.push((queue_key, position));
            }
        }
        if self.bodies.idle.len() > self.bodies.clear_at.max(FEW) {
            let mut idle = std::mem::take(&mut self.bodies.idle);
            idle.retain(|(queue_key, position)| self.has_idle_body(*queue_key, *position));
            self.bodies.clear_at = idle.len() * 2;
            self.bodies.idle = idle;
        }
        let before = self.memory.used();
        let half = self.memory.limit / 2;
        while self.memory.used() > half && self.let_one_go() {}
        let Some(wanted) = self.memory.line.wanted() else { return false };
        self.make_room(wanted);
        self.memory.used() < before
    }

    /// Lets bodies go until so many more bytes fit, or nothing idle is left.
    pub(super) fn make_room(&mut self, size: u64) {
        while self.memory.used().saturating_add(size) > self.memory.limit && self.let_one_go() {}
    }

    /// Lets a body go that a transaction sends, or else the one that became idle last; false when there is none.
    fn let_one_go(&mut self) -> bool {
        while let Some(key) = self.bodies.uncommitted.pop_last() {
            if let Some(transaction) = self.transactions.get_mut(&key)
                && transaction.let_one_go(&mut self.memory)
            {
                self.bodies.uncommitted.insert(key);
                return true;
            }
        }
        while let Some((queue_key, position)) = self.bodies.idle.pop() {
            if self.has_idle_body(queue_key, position)
                && let Some(queue) = self.queues.get_mut(&queue_key)
                && let Some(entry) = queue.get_mut(position)
                && self.memory.forget_body(&mut entry.held)
            {
                queue.bodiless += 1;
                return true;
            }
        }
        false
    }

    fn has_idle_body(&self, queue_key: QueueKey, position: Position) -> bool {
        let entry = self.queues.get(&queue_key).and_then(|queue| queue.get(position));
        entry.is_some_and(|entry| entry.place() != Place::InFlight && entry.held.may_go())
    }

    /// Asks for bodies that consumers with room wait for, and for those of dead letters.
    pub(super) fn read_ahead(&mut self, queue_key: QueueKey) {
        let Some(queue) = self.queues.get(&queue_key) else { return };
        // A new look when half of it has come costs each message a bounded number of looks.
        if queue.bodiless == 0 || queue.loading > MOST_AT_ONCE / 2 || self.gives_way(queue_key) {
            return;
        }
        let mut room = 0;
        for key in queue.takers() {
            room += self.subscriptions.get(&key).map_or(0, Subscription::room);
            if room >= MOST_AT_ONCE as u64 {
                break;
            }
        }
        let is_missing = |position: &Position| {
            queue.get(*position).is_some_and(|entry| entry.held.body().is_none() && !entry.is_loading)
        };
        let room = usize::try_from(room).unwrap_or(MOST_AT_ONCE).min(MOST_AT_ONCE);
        let wanted: Vec<_> = queue.ready().take(room).filter(is_missing).collect();
        for position in wanted {
            if !self.may_load_more(queue_key, position) {
                return;
            }
            self.load(queue_key, position);
        }
        while let Some(queue) = self.queues.get_mut(&queue_key)
            && let Some(&position) = queue.doomed.front()
        {
            let is_there = queue.get(position).is_some_and(|entry| entry.place() == Place::Doomed);
            if is_there && !self.may_load_more(queue_key, position) {
                return;
            }
            if let Some(queue) = self.queues.get_mut(&queue_key) {
                queue.doomed.pop_front();
            }
            if is_there {
                self.load(queue_key, position);
            }
        }
    }

    fn may_load_more(&self, queue_key: QueueKey, position: Position) -> bool {
        let Some(queue) = self.queues.get(&queue_key) else { return false };
        let size = queue.get(position).map_or(0, |entry| entry.held.size);
        let bytes = queue.loading_bytes.saturating_add(size);
        queue.loading == 0 || (queue.loading < MOST_AT_ONCE && bytes <= self.memory.limit / PART_OF_LIMIT)
    }

    /// Asks for the body of a message, unless that was done before.
    pub(super) fn load(&mut self, queue_key: QueueKey, position: Position) {
        let Some(queue) = self.queues.get_mut(&queue_key) else { return };
        let Some(entry) = queue.get_mut(position) else { return };
        if std::mem::replace(&mut entry.is_loading, true) {
            return;
        }
        let (stored, size) = (entry.held.id, entry.held.size);
        queue.loading += 1;
        queue.loading_bytes += size;
        self.ask_for(stored);
        self.bodies.under_way.insert(stored, (queue_key, position, size));
    }

    /// Has the store asked for a message, once for all who want it. To be called before that is noted.
    pub(super) fn ask_for(&mut self, stored: StoredId) {
        if !self.bodies.under_way.contains_key(&stored) && !self.bodies.reading.has(stored) {
            self.effects.load.push(stored);
        }
    }

    /// Nobody waits any more for a body that may be on its way.
    pub(super) fn forget_load(&mut self, queue_key: QueueKey, stored: StoredId) {
        let Some((_, _, size)) = self.bodies.under_way.remove(&stored) else { return };
        if let Some(queue) = self.queues.get_mut(&queue_key) {
            queue.loading -= 1;
            queue.loading_bytes -= size;
        }
    }

    /// Bodies have come, or cannot come.
    pub(super) fn loaded(&mut self, messages: Vec<(StoredId, Result<Arc<Message>, StoreError>)>) {
        let mut browsers = BTreeSet::new();
        for (stored, outcome) in messages {
            let wanted = self.bodies.under_way.remove(&stored);
            browsers.extend(self.loaded_for_browsers(stored, &outcome, wanted.is_some()));
            let Some((queue_key, position, size)) = wanted else { continue };
            let Some(queue) = self.queues.get_mut(&queue_key) else { continue };
            queue.loading -= 1;
            queue.loading_bytes -= size;
            let reserved_by = queue.reserved_by(position);
            if let Some(entry) = queue.get_mut(position) {
                entry.is_loading = false;
                match outcome {
                    Ok(message) => {
                        self.memory.regain_body(&mut entry.held, message);
                        queue.bodiless -= 1;
                        self.go_on(queue_key, position);
                        if let Some(key) = reserved_by {
                            self.attend(key);
                        }
                    }
                    Err(error) => self.cannot_be_read(queue_key, position, error),
                }
            }
            self.look_at(queue_key);
        }
        self.serve_browsers(browsers);
    }

    /// Sets a message aside, and lets those go on that stood behind it.
    pub(super) fn cannot_be_read(&mut self, queue_key: QueueKey, position: Position, error: StoreError) {
        let reserved_by = self.queues.get(&queue_key).and_then(|queue| queue.reserved_by(position));
        self.set_aside(queue_key, position, error);
        if let Some(key) = reserved_by {
            self.attend(key);
        }
        self.look_at(queue_key);
    }

    pub(super) fn go_on(&mut self, queue_key: QueueKey, position: Position) {
        let place = self.queues.get(&queue_key).and_then(|queue| queue.get(position)).map(Entry::place);
        if place != Some(Place::Doomed) || self.gives_way(queue_key) {
            self.note_idle(queue_key, position);
        } else if let Some(cause) = self.bodies.causes.remove(&(queue_key, position)) {
            self.dead_letter(queue_key, position, &cause);
        } else {
            self.expire(queue_key, position);
        }
    }

    fn set_aside(&mut self, queue_key: QueueKey, position: Position, error: StoreError) {
        self.bodies.causes.remove(&(queue_key, position));
        let Some(queue) = self.queues.get_mut(&queue_key) else { return };
        if let Some(subscription) =
            queue.reserved_by(position).and_then(|key| self.subscriptions.get_mut(&key))
        {
            subscription.reserved.remove(&position);
        }
        queue.put(position, Place::Aside);
        let Some(entry) = queue.get(position) else { return };
        let (stored, queue) = (entry.held.id, queue.destination.clone());
        self.effects.set_aside.push(SetAside { queue, stored, error });
    }

    /// Ends a message once its body is here, for its dead letter; `cause` is `None` for one that is past its expiration.
    pub(super) fn doom(&mut self, queue_key: QueueKey, position: Position, cause: Option<Cause>) {
        let Some(queue) = self.queues.get_mut(&queue_key) else { return };
        if queue.get(position).is_none_or(|entry| matches!(entry.place(), Place::Doomed | Place::Aside)) {
            return;
        }
        let reserved_by = queue.reserved_by(position);
        queue.put(position, Place::Doomed);
        queue.doomed.push_back(position);
        if let Some(cause) = cause {
            self.bodies.causes.insert((queue_key, position), cause);
        }
        if let Some(key) = reserved_by {
            if let Some(subscription) = self.subscriptions.get_mut(&key) {
                subscription.reserved.remove(&position);
            }
            self.attend(key);
        }
        self.look_at(queue_key);
    }
}

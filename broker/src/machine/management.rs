//! What an operator does with the messages of a queue: purging, moving, copying, and bringing dead letters back.
//!
//! - A message is named by where a look at its queue has shown it ([`Location`]), and comes with its body, which may be with
//!   the store only. What is gone by now, or what somebody has, is left alone.
//! - A move is one batch of the store with nothing else in it, as that of a dead letter is (`moving`). While that is under way
//!   the message is in neither queue; when it is refused for want of room, the message is where it was, as it was.
//! - Nothing leaves for a copy, so that it needs room in memory and in the store as a send does; it does not wait for any.
//! - What is moved or copied begins anew: its count is 1, and it stands behind all that is there.
//! - A topic to which nobody is subscribed is no place to bring a message to: it would be lost.

use std::sync::Arc;

use corriere_core::{Destination, DestinationKind, Message, Value};

use super::Machine;
use super::effects::Ticket;
use super::moving::Left;
use super::queue::{Entry, Place, Position, QueueKey};
use super::recording::OnStored;
use super::sending::{Sending, Target};
use super::snapshot::Location;
use super::transaction::NOBODY;
use crate::operation_counts::OperationCounts;
use crate::store::{Arrival, Removal, StoreError, StoreOperation};

/// Messages of a queue, and what is done with them.
#[derive(Debug)]
pub struct Order {
    /// Whose messages.
    pub queue: Destination,
    /// What is done with each.
    pub action: Action,
    /// Which, as they were shown.
    pub messages: Vec<(Location, Arc<Message>)>,
}

/// What is done with a message.
#[derive(Clone, Debug)]
pub enum Action {
    /// It is removed.
    Purge,
    /// A dead letter goes back to where it came from.
    Retry,
    /// It goes elsewhere.
    Move(Destination),
    /// A copy of it goes elsewhere.
    Copy(Destination),
}

/// What a dead letter says of its death, which would mislead whoever gets the message again.
const OF_DEATH: [&str; 6] = [
    "dlqDeliveryFailureCause",
    "dlqOriginalDestination",
    "dlqOriginalExpiration",
    "dlqListener",
    "dlqTime",
    "JMSXDeliveryCount",
];

impl Machine {
    /// Does what an operator ordered; answered once the store knows of it.
    pub(super) fn manage(&mut self, ticket: Ticket, order: Order) {
        let recorded = self.recorded();
        let Order { queue, action, messages } = order;
        let matched = messages.len() as u64;
        self.orders.insert(ticket, OperationCounts { matched, ..OperationCounts::default() });
        let queue_key = match self.find_target(&queue) {
            Some(Target::Queue(queue)) => Some(queue),
            _ => None,
        };
        // What the order is to take must not be handed out as what stands before it is taken.
        self.attended_later = Some(Vec::new());
        for (Location { position, stored }, message) in messages {
            let entry = queue_key.and_then(|key| Some((key, self.queues.get(&key)?.find(position, stored)?)));
            match entry {
                Some((key, entry)) if may_be(&action, entry) => {
                    self.manage_one(ticket, &action, key, position, &message);
                }
                _ => self.note(ticket, |outcome| outcome.skipped += 1),
            }
        }
        let attended_later = self.attended_later.take();
        attended_later.into_iter().flatten().for_each(|key| self.attend(key));
        self.confirm_when_stored(ticket, recorded);
    }

    fn manage_one(
        &mut self,
        ticket: Ticket,
        action: &Action,
        queue: QueueKey,
        position: Position,
        message: &Message,
    ) {
        let (to, is_copy) = match action {
            Action::Purge => {
                self.purge(queue, position);
                self.note(ticket, |outcome| outcome.done += 1);
                return;
            }
            Action::Retry => (origin_of(message), false),
            Action::Move(to) => (Some(to.clone()), false),
            Action::Copy(to) => (Some(to.clone()), true),
        };
        let target = to.as_ref().and_then(|to| self.target(to)).filter(|target| match target {
            Target::Queue(_) => true,
            Target::Topic(topic) => self.has_subscribers(*topic),
        });
        let Some(target) = target else {
            self.note(ticket, |outcome| outcome.without_destination += 1);
            return;
        };
        let mut message = Message::clone(message);
        message.headers_mut().destination = to;
        let lacks_room = |machine: &mut Self| {
            (machine.store_room.is_full() && machine.is_stored(NOBODY, &message))
                || !machine.has_room_for(message.size() as u64)
        };
        if is_copy && lacks_room(self) {
            self.note(ticket, |outcome| outcome.no_room += 1);
            return;
        }
        if matches!(action, Action::Retry) {
            let properties = message.properties_mut_unchecked();
            for name in OF_DEATH {
                properties.remove(name);
            }
        }
        self.carry(ticket, target, message, (!is_copy).then_some((queue, position)));
    }

    fn purge(&mut self, queue_key: QueueKey, position: Position) {
        self.record_removal(queue_key, position, Removal::Purged);
        self.bodies.causes.remove(&(queue_key, position));
        if let Some(queue) = self.queues.get_mut(&queue_key) {
            queue.counts.purged += 1;
            self.take_out(queue_key, position);
        }
    }

    /// Brings a message to its target, and takes the one out that it was, if it was one.
    fn carry(
        &mut self,
        ticket: Ticket,
        target: Target,
        message: Message,
        from: Option<(QueueKey, Position)>,
    ) {
        let stored = from.and_then(|(queue, position)| self.stored(queue, position));
        let removal = stored.map(|stored| StoreOperation::Remove {
            stored,
            reason: Removal::MovedOut,
            transaction: None,
        });
        let left = from.and_then(|(queue, position)| {
            self.queues.get_mut(&queue)?.counts.moved_out += 1;
            self.set_off(queue, position, Removal::MovedOut).map(Box::new)
        });
        let sending = self.hold_for(target, Arc::new(message), NOBODY);
        let arrival = if from.is_some() { Arrival::MovedIn } else { Arrival::Copied };
        if let Some(operation) = self.to_store(&sending, arrival) {
            let operations = removal.into_iter().chain([operation]).collect();
            self.moves.add(operations, OnStored::Carried { ticket, sending, left });
            return;
        }
        // First there, then gone here: a crash in between must not lose it.
        self.make_arrive(sending, Arrival::MovedIn, None);
        removal.into_iter().for_each(|removal| self.record(removal));
        if let Some(left) = left {
            self.has_arrived(*left);
        }
        self.note(ticket, |outcome| outcome.done += 1);
    }

    /// The store has what an operator moves or copies, or has refused it.
    pub(super) fn carried(
        &mut self,
        ticket: Ticket,
        sending: Sending,
        left: Option<Box<Left>>,
        stored: &Result<(), StoreError>,
    ) {
        if stored.is_ok() {
            self.make_arrive(sending, Arrival::MovedIn, None);
            if let Some(left) = left {
                self.has_arrived(*left);
            }
            self.note(ticket, |outcome| outcome.done += 1);
            return;
        }
        self.drop_sending(sending);
        if let Some(left) = left {
            self.turn_back(*left);
        }
        self.note(ticket, |outcome| outcome.no_room += 1);
    }

    fn note(&mut self, ticket: Ticket, change: impl FnOnce(&mut OperationCounts)) {
        if let Some(outcome) = self.orders.get_mut(&ticket) {
            change(outcome);
        }
    }
}

/// Whether a message is to be touched at all: one that somebody has can only be copied, and only purged what is to die already
/// or cannot be read back.
fn may_be(action: &Action, entry: &Entry) -> bool {
    match (action, entry.place()) {
        (Action::Copy(_), _)
        | (_, Place::Ready | Place::Delayed | Place::Reserved)
        | (Action::Purge, Place::Doomed | Place::Aside) => true,
        (_, Place::InFlight | Place::Doomed | Place::Aside) => false,
    }
}

/// Where a dead letter came from.
fn origin_of(message: &Message) -> Option<Destination> {
    let Some(Value::String(text)) = message.properties().get("dlqOriginalDestination") else { return None };
    Destination::parse(text, DestinationKind::Queue).ok()
}

//! What an operator does with messages of a queue: purging, moving, copying, and bringing dead letters back.

use std::sync::Arc;

use corriere_broker::OperationCounts;
use corriere_broker::machine::{Action, ConnectionKey, Effects, Location, Order, Ticket};
use corriere_broker::store::{Arrival, StoreOperation, StoredId};
use corriere_core::provider::Confirmation;
use corriere_core::{Destination, DestinationKind, Message, Value};

use super::entry::{Entry, Place, id_of};
use super::resends::is_stored;
use super::session::{Entering, Origin};
use super::{Judgement, Model, violation};

/// Stands for no connection: what an operator brings is nobody's own.
const NOBODY: ConnectionKey = ConnectionKey(0);

/// What a dead letter says of its death, and what was brought back does not.
const OF_DEATH: [&str; 6] = [
    "dlqDeliveryFailureCause",
    "dlqOriginalDestination",
    "dlqOriginalExpiration",
    "dlqListener",
    "dlqTime",
    "JMSXDeliveryCount",
];

/// A copy of which only the machine knows whether there is memory for it.
#[derive(Debug)]
pub(super) struct Copying {
    ticket: Ticket,
    message: Message,
    size: usize,
}

impl Model {
    /// How many messages were purged, brought back, moved and copied, left alone, had nowhere to go, and found no room.
    #[must_use]
    pub fn managed(&self) -> [u64; 7] {
        self.managed
    }

    pub(super) fn manage(&mut self, ticket: Ticket, order: &Order) {
        let matched = order.messages.len() as u64;
        self.orders.push((ticket, OperationCounts { matched, ..OperationCounts::default() }));
        self.tickets.owe_eventually(NOBODY, ticket);
        // What is removed by it is removed before it is told.
        self.acknowledging = Some(ticket);
        let mut seen = Vec::new();
        for (location, message) in &order.messages {
            let found = self.find_shown(&order.queue, *location, message, &seen);
            seen.extend(found.map(|index| self.entries[index].position));
            let Some(index) = found.filter(|index| may_be(&order.action, &self.entries[*index])) else {
                self.note_order(ticket, |counts| counts.skipped += 1);
                self.managed[4] += 1;
                continue;
            };
            self.manage_one(ticket, &order.action, index, message);
        }
    }

    /// The first message of a queue that may be this one and was not seen yet: what is not stored may be there several times.
    fn find_shown(
        &self,
        queue: &Destination,
        location: Location,
        message: &Message,
        seen: &[(u8, u64)],
    ) -> Option<usize> {
        let place = Place::Queue(queue.clone());
        let is_it = |entry: &Entry| {
            entry.place == place
                && entry.id() == id_of(message)
                && entry.stored.is_none_or(|stored| stored == location.stored())
                && !seen.contains(&entry.position)
        };
        let found = self.entries.iter().enumerate().filter(|(_, entry)| is_it(entry));
        found.min_by_key(|(_, entry)| entry.position).map(|(index, _)| index)
    }

    fn manage_one(&mut self, ticket: Ticket, action: &Action, index: usize, message: &Message) {
        let (deed, to) = match action {
            Action::Purge => {
                let entry = self.entries.remove(index);
                self.count(entry.place.destination()).purged += 1;
                self.managed[0] += 1;
                return self.note_order(ticket, |counts| counts.done += 1);
            }
            Action::Retry => (1, origin_of(message)),
            Action::Move(to) => (2, Some(to.clone())),
            Action::Copy(to) => (3, Some(to.clone())),
        };
        let Some(to) = to.filter(|to| self.takes_messages(to)) else {
            self.managed[5] += 1;
            return self.note_order(ticket, |counts| counts.without_destination += 1);
        };
        let mut brought = message.clone();
        brought.headers_mut().destination = Some(to);
        if matches!(action, Action::Retry) {
            for name in OF_DEATH {
                brought.properties_mut_unchecked().remove(name);
            }
        }
        self.managed[deed] += 1;
        if !matches!(action, Action::Copy(_)) {
            let was = self.entries.remove(index);
            self.count(was.place.destination()).moved_out += 1;
            return self.bring(ticket, brought, Some(Box::new(was)));
        }
        let is_refused = self.store_is_full && is_stored(&brought, &self.copies_for(NOBODY, &brought));
        if is_refused || (!self.can_load && !self.fits(message.size())) {
            return self.finds_no_room(ticket);
        }
        if self.can_load {
            self.copying.push(Copying { ticket, message: brought, size: message.size() });
        } else {
            self.bring(ticket, brought, None);
        }
    }

    /// Where bodies come and go it is seen, not predicted, whether there is memory for a copy.
    pub(super) fn bring_what_was_copied(&mut self, effects: &Effects) -> Judgement {
        for Copying { ticket, message, size } in std::mem::take(&mut self.copying) {
            let is_copied = |operation: &StoreOperation| {
                operation.arrival() == Some(Arrival::Copied)
                    && operation_id(operation) == Some(id_of(&message))
            };
            let is_stored = effects.store.iter().flat_map(|batch| &batch.operations).any(is_copied);
            let is_done = effects.managed.iter().any(|(told, outcome)| {
                *told == ticket && outcome.as_ref().is_ok_and(|counts| counts.done > 0)
            });
            if is_stored || is_done {
                self.bring(ticket, message, None);
                continue;
            }
            if self.memory_needed() + size as u64 <= self.settings.memory_limit {
                violation!("{} is not copied although there is room for it", id_of(&message));
            }
            self.finds_no_room(ticket);
        }
        Ok(())
    }

    /// Brings a message to where it goes, by way of the store if that is to have it; `was` is what it was until then, unless it is a
    /// copy.
    fn bring(&mut self, ticket: Ticket, message: Message, was: Option<Box<Entry>>) {
        let queue = message.headers().destination.clone().expect("it was given one");
        let (instance, copies) = (self.next_instance(), self.copies_for(NOBODY, &message));
        let message = Arc::new(message);
        if is_stored(&message, &copies) {
            let arrival = if was.is_some() { Arrival::MovedIn } else { Arrival::Copied };
            self.entering.push(Entering {
                queue,
                copies,
                message,
                instance,
                origin: Origin::Carried(ticket, arrival),
                batch: None,
                resent: Vec::new(),
                was,
                is_put_off: false,
            });
        } else {
            self.has_arrived(ticket, &message, (instance, None), &copies);
        }
    }

    /// What an operator brought is where it goes.
    pub(super) fn has_arrived(
        &mut self,
        ticket: Ticket,
        message: &Arc<Message>,
        (instance, stored): (u64, Option<StoredId>),
        copies: &[Place],
    ) {
        let to = message.headers().destination.clone().expect("it was given one");
        self.publish(&to, message, (instance, stored), (Some(NOBODY), Arrival::MovedIn), copies);
        self.note_order(ticket, |counts| counts.done += 1);
    }

    /// The store had no room for what an operator brought: what was moved is where it was, as it was.
    pub(super) fn turn_back(&mut self, ticket: Ticket, was: Option<Box<Entry>>) {
        self.finds_no_room(ticket);
        let Some(mut was) = was else { return };
        let source = was.place.destination().clone();
        if source.is_temporary() && !self.temporaries().iter().any(|there| there.destination == source) {
            return;
        }
        self.count(&source).moved_out -= 1;
        self.turned_back.extend(was.stored);
        let is_there = |key| self.subscription(&key).is_some_and(|it| it.is_open && it.place == was.place);
        was.reserved_for = was.reserved_for.filter(|key| is_there(*key));
        self.entries.push(*was);
        self.expire_if_due(self.entries.len() - 1);
    }

    /// An operator is told what became of it.
    pub(super) fn check_managed(&mut self, effects: &Effects) -> Judgement {
        for (ticket, outcome) in &effects.managed {
            self.tickets.answer(*ticket, &outcome.clone().map(|_| Confirmation::Done))?;
            let Some(index) = self.orders.iter().position(|(order, _)| order == ticket) else {
                violation!("{ticket:?} is no order: {outcome:?}");
            };
            let (_, expected) = self.orders.remove(index);
            if outcome.as_ref() != Ok(&expected) {
                violation!("an operator is told {outcome:?}, expected {expected:?}");
            }
        }
        Ok(())
    }

    /// Whether somebody gets what goes there, now or later.
    fn takes_messages(&self, to: &Destination) -> bool {
        let has_subscribers = || {
            let mut open = self.subscriptions.iter().filter(|subscription| subscription.is_open);
            open.any(|subscription| subscription.place.destination() == to)
                || self.lasting().iter().any(|lasting| lasting.topic == *to)
        };
        let is_there = !to.is_temporary() || self.temporaries().iter().any(|there| there.destination == *to);
        is_there && (!to.is_topic() || has_subscribers())
    }

    fn finds_no_room(&mut self, ticket: Ticket) {
        self.managed[6] += 1;
        self.note_order(ticket, |counts| counts.no_room += 1);
    }

    fn note_order(&mut self, ticket: Ticket, change: impl FnOnce(&mut OperationCounts)) {
        if let Some((_, counts)) = self.orders.iter_mut().find(|(order, _)| *order == ticket) {
            change(counts);
        }
    }
}

/// Whether a message is to be touched: what somebody has is only copied, what is to die anyway or cannot be read back is purged
/// too.
fn may_be(action: &Action, entry: &Entry) -> bool {
    match action {
        Action::Copy(_) => true,
        Action::Purge => entry.holder.is_none(),
        Action::Retry | Action::Move(_) => entry.is_lying(),
    }
}

/// Where a dead letter came from.
fn origin_of(message: &Message) -> Option<Destination> {
    let Some(Value::String(text)) = message.properties().get("dlqOriginalDestination") else { return None };
    Destination::parse(text, DestinationKind::Queue).ok()
}

fn operation_id(operation: &StoreOperation) -> Option<corriere_core::MessageId> {
    match operation {
        StoreOperation::Append { message, .. } | StoreOperation::Publish { message, .. } => {
            Some(id_of(message))
        }
        _ => None,
    }
}

//! What becomes of a message: it enters a queue, is given back, settled, expires, dies.

use std::sync::Arc;

use corriere_broker::DeadLetters;
use corriere_broker::store::{Arrival, StoredId};
use corriere_core::{Destination, Message, RedeliveryPolicy, Timestamp, Value};

use super::Model;
use super::entry::{DeadLetter, Death, Entry, Place, SubscriptionKey};
use super::session::{Entering, Origin};

/// How a message returns to its queue.
#[derive(Debug)]
pub(super) struct Return {
    /// Whether it was handed over, so that the delivery counts as failed.
    pub(super) is_counted: bool,
    /// Why, where somebody said so.
    pub(super) death: Death,
    /// The policy of the subscription that had it.
    pub(super) policy: RedeliveryPolicy,
    /// When it may be delivered again.
    pub(super) not_before: Option<Timestamp>,
    /// For whom alone.
    pub(super) reserved_for: Option<SubscriptionKey>,
}

impl Model {
    /// A message becomes visible in a queue: this gives it its position.
    pub(super) fn enter(
        &mut self,
        place: Place,
        message: Arc<Message>,
        (instance, stored): (u64, Option<StoredId>),
        arrival: Arrival,
        dead_letter: Option<DeadLetter>,
    ) {
        let counts = self.count(place.destination());
        match arrival {
            Arrival::Sent => counts.enqueued += 1,
            Arrival::MovedIn | Arrival::Copied => counts.moved_in += 1,
        }
        let position = self.position(&message);
        self.entries.push(Entry {
            place,
            message,
            instance,
            position,
            failed: 0,
            conversion_failed: false,
            not_before: None,
            reserved_for: None,
            holder: None,
            dead_letter,
            stored,
            is_recovered: false,
            doomed: None,
            is_aside: false,
        });
        // Expiry is checked when a message becomes visible.
        self.expire_if_due(self.entries.len() - 1);
    }

    /// The position of the next message.
    pub(super) fn position(&mut self, message: &Message) -> (u8, u64) {
        self.positions += 1;
        let band = if self.settings.priorities { 9 - message.headers().priority.level() } else { 0 };
        (band, self.positions)
    }

    /// A message becomes visible where it was sent: in its queue, or with every subscription to its topic. Of the durable ones
    /// with those of `copies` that are there: it is named by the place among them.
    pub(super) fn publish(
        &mut self,
        destination: &Destination,
        message: &Arc<Message>,
        (instance, stored): (u64, Option<StoredId>),
        (sender, arrival): (Option<corriere_broker::machine::ConnectionKey>, Arrival),
        copies: &[Place],
    ) {
        for (place, copy) in copies.iter().enumerate() {
            if !self.is_there(copy) {
                continue;
            }
            // Once read back each has a body of its own.
            let instance = if self.can_load { self.next_instance() } else { instance };
            let stored = stored.map(|first| first.with(place));
            self.enter(copy.clone(), Arc::clone(message), (instance, stored), arrival, None);
        }
        let Some(sender) = sender else { return };
        if !destination.is_topic() {
            self.enter(
                Place::Queue(destination.clone()),
                Arc::clone(message),
                (instance, stored),
                arrival,
                None,
            );
            return;
        }
        let places: Vec<Place> = self
            .subscriptions
            .iter()
            .filter(|subscription| subscription.is_open && subscription.place.destination() == destination)
            .filter(|subscription| matches!(subscription.place, Place::Private { .. }))
            .filter(|subscription| !(subscription.no_local && subscription.key.0 == sender))
            .map(|subscription| subscription.place.clone())
            .collect();
        for place in places {
            self.enter(place, Arc::clone(message), (instance, None), arrival, None);
        }
    }

    /// A consumer settled a message.
    pub(super) fn settle(&mut self, index: usize) {
        let entry = self.entries.remove(index);
        self.count(entry.place.destination()).acknowledged += 1;
    }

    /// A message that nobody has is dropped if its time is over. Answers whether it was.
    pub(super) fn expire_if_due(&mut self, index: usize) -> bool {
        let entry = &self.entries[index];
        let is_due = entry.is_lying() && entry.message.headers().is_expired(self.now);
        let is_due = is_due && !self.gives_way(&entry.place);
        if is_due {
            let deliveries = entry.failed;
            self.bury(index, Death::Expired, deliveries);
        }
        is_due
    }

    /// Takes a message from whoever has it and puts it back to its position, or into the dead letters.
    pub(super) fn give_back(&mut self, index: usize, how: Return) {
        let entry = &mut self.entries[index];
        entry.holder = None;
        if how.is_counted {
            entry.failed += 1;
        }
        let failed = entry.failed;
        // A dead letter is never dead-lettered again.
        if how.is_counted
            && how.policy.is_exhausted(failed)
            && !self.holds_dead_letters(&self.entries[index].place)
        {
            self.bury(index, how.death, failed);
            return;
        }
        let entry = &mut self.entries[index];
        entry.not_before = how.not_before;
        entry.reserved_for = how.reserved_for;
        if self.expire_if_due(index) {
            return;
        }
        // A topic's subscription that is closed takes its private queue with it.
        if let Place::Private { topic, subscription } = self.entries[index].place.clone()
            && !self.subscriptions.iter().any(|other| other.key == subscription && other.is_open)
        {
            self.entries.remove(index);
            self.count(&topic).discarded += 1;
        }
    }

    /// A message is dead: it leaves its queue, for the dead letters or for good.
    pub(super) fn bury(&mut self, index: usize, cause: Death, deliveries: u32) {
        let mut entry = self.entries.remove(index);
        entry.holder = None;
        entry.doomed = Some((cause.clone(), deliveries));
        let source = entry.place.destination().clone();
        let is_kept = (entry.message.headers().is_persistent() || self.keeps_what_is_not_persistent(&source))
            && self.dead_letters_of(&source) != DeadLetters::Discard
            && !self.holds_dead_letters(&entry.place)
            && !source.is_temporary();
        self.by_policy[1] += u64::from(self.dead_letters_of(&source) != self.settings.dead_letters);
        let has_expired = matches!(cause, Death::Expired);
        let counts = self.count(&source);
        match (has_expired, is_kept) {
            (true, _) => counts.expired += 1,
            (false, true) => counts.dead_lettered += 1,
            (false, false) => counts.discarded += 1,
        }
        if !is_kept {
            return;
        }
        let letter =
            DeadLetter { original: Arc::clone(&entry.message), source, cause, deliveries, at: self.now };
        let queue = self.dead_letter_queue(&letter.source);
        let message = Arc::new(copy_for_the_dead_letters(&letter));
        let instance = self.next_instance();
        if message.headers().is_persistent() {
            // It is moved in one batch, so it is visible when that is durable.
            let origin = Origin::Moved(Box::new(letter));
            let was = Some(Box::new(entry));
            self.entering.push(Entering {
                queue,
                copies: Vec::new(),
                message,
                instance,
                origin,
                batch: None,
                resent: Vec::new(),
                was,
                is_put_off: false,
            });
        } else {
            self.enter(Place::Queue(queue), message, (instance, None), Arrival::MovedIn, Some(letter));
        }
    }

    /// Where the dead of `source` go.
    pub(super) fn dead_letter_queue(&self, source: &Destination) -> Destination {
        let name = match self.dead_letters_of(source) {
            DeadLetters::Shared => "ActiveMQ.DLQ".to_owned(),
            _ if source.is_topic() => format!("DLQ.topic.{}", source.name()),
            _ => format!("DLQ.{}", source.name()),
        };
        Destination::queue(&name).expect("the name is not empty")
    }

    /// A number for a message that memory is counted for.
    pub(super) fn next_instance(&mut self) -> u64 {
        self.instances += 1;
        self.instances
    }
}

/// What the model itself would put into the dead letters.
fn copy_for_the_dead_letters(letter: &DeadLetter) -> Message {
    let mut copy = (*letter.original).clone();
    copy.headers_mut().expiration = None;
    let (text, listener) = match &letter.cause {
        Death::Expired => (Arc::from("expired"), None),
        Death::Returned => (Arc::from("returned"), None),
        Death::Failure(cause) => (Arc::clone(&cause.text), cause.listener.clone()),
    };
    let mut properties = vec![
        ("dlqDeliveryFailureCause", Value::String(text)),
        ("dlqOriginalDestination", Value::String(letter.source.to_string().into())),
        ("dlqTime", Value::Long(i64::try_from(letter.at.0).unwrap_or(i64::MAX))),
        ("JMSXDeliveryCount", Value::Int(i32::try_from(letter.deliveries).unwrap_or(i32::MAX))),
    ];
    properties.extend(listener.map(|listener| ("dlqListener", Value::String(listener))));
    for (name, value) in properties {
        copy.properties_mut_unchecked().set_unchecked(name, value);
    }
    copy
}

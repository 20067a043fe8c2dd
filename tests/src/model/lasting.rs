//! Durable subscriptions: who may have them, what they keep, and how they end.

use std::sync::Arc;

use corriere_broker::DurableSubscription;
use corriere_broker::machine::{BatchId, ConnectionKey, Ticket};
use corriere_broker::store::{Recipient, SubscriptionName};
use corriere_core::provider::Subscribe;
use corriere_core::{Destination, Message};

use super::entry::{Place, SubscriptionKey};
use super::resends::is_stored;
use super::{Answer, Judgement, Model, violation};

/// A durable subscription.
#[derive(Clone, Debug)]
pub struct Lasting {
    /// Which one.
    pub name: SubscriptionName,
    /// What it is to.
    pub topic: Destination,
    /// Whether it leaves out what its own client sends.
    pub no_local: bool,
    /// One of the same name that is made later is another one.
    pub life: u64,
    /// Who consumes from it.
    pub consumer: Option<SubscriptionKey>,
    /// Whether the store has it.
    is_stored: bool,
    /// The batch by which it is to have it.
    making: Option<BatchId>,
    /// Who is to be told when the store does.
    opening: Vec<(SubscriptionKey, Ticket)>,
}

impl Lasting {
    fn place(&self) -> Place {
        Place::Durable { topic: self.topic.clone(), name: self.name.clone(), life: self.life }
    }
}

impl Model {
    /// All durable subscriptions.
    #[must_use]
    pub fn lasting(&self) -> &[Lasting] {
        &self.lasting
    }

    /// How often a durable subscription that had messages was consumed from again, was made anew, was removed, and outlived
    /// the process.
    #[must_use]
    pub fn lasted(&self) -> [u64; 4] {
        self.lasted
    }

    fn client_id(&self, connection: ConnectionKey) -> Option<&Arc<str>> {
        self.connections.iter().find(|other| other.key == connection)?.client_id.as_ref()
    }

    fn own_name(&self, connection: ConnectionKey, name: &Arc<str>) -> Option<SubscriptionName> {
        let client_id = Arc::clone(self.client_id(connection)?);
        Some(SubscriptionName { client_id, name: Arc::clone(name) })
    }

    fn find_lasting(&self, name: &SubscriptionName) -> Option<&Lasting> {
        self.lasting.iter().find(|lasting| lasting.name == *name)
    }

    /// Whether messages may lie there.
    pub(super) fn is_there(&self, place: &Place) -> bool {
        match place {
            Place::Durable { life, .. } => {
                self.lasting.iter().chain(&self.replaced).any(|lasting| lasting.life == *life)
            }
            Place::Queue(_) | Place::Private { .. } => true,
        }
    }

    /// Whether it is that of a durable subscription which gives way to one that the store is to make. What lies there ends with that,
    /// and by nothing else meanwhile.
    pub(super) fn gives_way(&self, place: &Place) -> bool {
        matches!(place, Place::Durable { life, .. } if self.replaced.iter().any(|lasting| lasting.life == *life))
    }

    /// What goes to a recipient that the store names goes there.
    pub(super) fn place_of(&self, recipient: &Recipient) -> Place {
        match recipient {
            Recipient::Queue(queue) => Place::Queue(queue.clone()),
            Recipient::Subscription(name) => {
                self.find_lasting(name).expect("the store brought it back").place()
            }
        }
    }

    /// The durable subscriptions that get what a connection sends now.
    pub(super) fn copies_for(&self, sender: ConnectionKey, message: &Message) -> Vec<Place> {
        let sender = self.client_id(sender);
        let topic = message.headers().destination.as_ref();
        let get_it = self.lasting.iter().filter(|lasting| {
            Some(&lasting.topic) == topic && !(lasting.no_local && Some(&lasting.name.client_id) == sender)
        });
        get_it.map(Lasting::place).collect()
    }

    /// Whether the store keeps what a connection sends now.
    pub(super) fn would_be_stored(&self, sender: ConnectionKey, message: &Message) -> bool {
        is_stored(message, &self.copies_for(sender, message))
    }

    fn has_unsettled(&self, lasting: &Lasting) -> bool {
        let place = lasting.place();
        self.entries.iter().any(|entry| entry.place == place && entry.holder.is_some())
    }

    pub(super) fn open_lasting(
        &mut self,
        connection: ConnectionKey,
        ticket: Ticket,
        subscribe: &Subscribe,
        name: &Arc<str>,
    ) {
        let Some(name) = self.own_name(connection, name) else {
            return self.tickets.owe(connection, ticket, Answer::Refused);
        };
        let Subscribe { destination, no_local, .. } = subscribe;
        if !destination.is_topic() || destination.is_temporary() {
            return self.tickets.owe(connection, ticket, Answer::Invalid);
        }
        if let Some(lasting) = self.find_lasting(&name) {
            let is_same = lasting.topic == *destination && lasting.no_local == *no_local;
            if lasting.consumer.is_some() || (!is_same && self.has_unsettled(lasting)) {
                return self.tickets.owe(connection, ticket, Answer::Refused);
            }
            if !is_same {
                self.replace_lasting(&name);
                self.lasted[1] += 1;
            }
        }
        if self.find_lasting(&name).is_none() {
            self.make_lasting(name.clone(), destination.clone(), *no_local, false);
        }
        let key = (connection, subscribe.subscription);
        let has_messages = {
            let place = self.place_of(&Recipient::Subscription(name.clone()));
            self.open_subscription_at(connection, subscribe, place.clone());
            self.entries.iter().any(|entry| entry.place == place)
        };
        self.lasted[0] += u64::from(has_messages);
        let lasting = self.lasting.iter_mut().find(|lasting| lasting.name == name).expect("it was made");
        lasting.consumer = Some(key);
        if lasting.is_stored {
            return self.owe_when_served(key, ticket);
        }
        lasting.opening.push((key, ticket));
        self.tickets.hold(connection, ticket);
    }

    /// The machine has just these durable subscriptions, each with its messages.
    pub(super) fn check_lasting(&self, found: &[DurableSubscription]) -> Judgement {
        if !self.batches.is_empty() {
            return Ok(());
        }
        if found.len() != self.lasting.len() {
            violation!("the durable subscriptions are {found:?}, expected {:?}", self.lasting);
        }
        for found in found {
            let name =
                SubscriptionName { client_id: Arc::clone(&found.client_id), name: Arc::clone(&found.name) };
            let Some(lasting) = self.find_lasting(&name) else {
                violation!("nobody made {found:?}");
            };
            let place = lasting.place();
            let pending = self.entries.iter().filter(|entry| entry.place == place).count() as u64;
            if found.is_active != lasting.consumer.is_some()
                || found.counts.pending != pending
                || !found.counts.are_conserved()
            {
                violation!("{found:?} is not {lasting:?} with {pending} messages");
            }
        }
        Ok(())
    }

    fn make_lasting(&mut self, name: SubscriptionName, topic: Destination, no_local: bool, is_stored: bool) {
        let life = self.next_instance();
        let opening = Vec::new();
        self.lasting.push(Lasting {
            name,
            topic,
            no_local,
            life,
            consumer: None,
            is_stored,
            making: None,
            opening,
        });
    }

    /// One that a start brings back.
    pub(super) fn bring_back_lasting(&mut self, name: SubscriptionName, topic: Destination, no_local: bool) {
        self.make_lasting(name, topic, no_local, true);
    }

    /// The store is asked to make one, in this step.
    pub(super) fn note_making(&mut self, name: &SubscriptionName, batch: BatchId) -> Judgement {
        let is_new =
            |lasting: &&mut Lasting| lasting.name == *name && !lasting.is_stored && lasting.making.is_none();
        let Some(lasting) = self.lasting.iter_mut().find(is_new) else {
            violation!("{name} is stored and nobody made it");
        };
        lasting.making = Some(batch);
        Ok(())
    }

    /// The store has made one.
    pub(super) fn lasting_is_stored(&mut self, batch: BatchId) {
        let made = |lasting: &&mut Lasting| lasting.making == Some(batch);
        let Some(lasting) = self.lasting.iter_mut().chain(&mut self.replaced).find(made) else { return };
        lasting.is_stored = true;
        let (name, life) = (lasting.name.clone(), lasting.life);
        self.end_replaced(&name, life);
        let Some(lasting) = self.find_made(life) else { return };
        for (key, ticket) in std::mem::take(&mut lasting.opening) {
            self.unserved.push((key, ticket));
        }
    }

    /// A consumer goes; all stays where it is.
    pub(super) fn deactivate(&mut self, key: &SubscriptionKey) {
        for lasting in self.lasting.iter_mut().filter(|lasting| lasting.consumer == Some(*key)) {
            lasting.consumer = None;
        }
    }

    pub(super) fn unsubscribe(&mut self, connection: ConnectionKey, ticket: Ticket, name: &Arc<str>) {
        let name = self.own_name(connection, name);
        let lasting = name.as_ref().and_then(|name| self.find_lasting(name));
        if lasting.is_none_or(|lasting| lasting.consumer.is_some() || self.has_unsettled(lasting)) {
            return self.tickets.owe(connection, ticket, Answer::Refused);
        }
        let before = self.entries.len();
        name.iter().for_each(|name| self.end_lasting(name));
        self.lasted[2] += u64::from(self.entries.len() < before);
        self.acknowledging = Some(ticket);
        self.tickets.owe_eventually(connection, ticket);
    }

    fn find_made(&mut self, life: u64) -> Option<&mut Lasting> {
        self.lasting.iter_mut().find(|lasting| lasting.life == life)
    }

    /// One gives way to one of its name, and ends when the store has made that.
    fn replace_lasting(&mut self, name: &SubscriptionName) {
        let index = self.lasting.iter().position(|lasting| lasting.name == *name).expect("it is there");
        let mut lasting = self.lasting.remove(index);
        // Whoever made it and went again is told when the store has done so.
        for (key, ticket) in std::mem::take(&mut lasting.opening) {
            self.tickets.owe_eventually(key.0, ticket);
        }
        self.replaced.push(lasting);
    }

    /// Those end that gave way to the one of this life, which is there now.
    fn end_replaced(&mut self, name: &SubscriptionName, life: u64) {
        let is_older = |lasting: &Lasting| lasting.name == *name && lasting.life < life;
        while let Some(index) = self.replaced.iter().position(is_older) {
            let lasting = self.replaced.remove(index);
            self.discard_of(&lasting);
        }
    }

    fn end_lasting(&mut self, name: &SubscriptionName) {
        self.replace_lasting(name);
        self.end_replaced(name, u64::MAX);
    }

    fn discard_of(&mut self, lasting: &Lasting) {
        let place = lasting.place();
        let before = self.entries.len();
        self.entries.retain(|entry| entry.place != place);
        let discarded = (before - self.entries.len()) as u64;
        self.count(&lasting.topic).discarded += discarded;
    }
}

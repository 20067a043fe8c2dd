//! Room in the store: who waits for it, and when sends go on.
//!
//! A store that has refused a send for want of room refuses all that it is given until it is told to take sends again
//! ([`MessageStore::take_sends`](crate::store::MessageStore::take_sends)). So none of a producer's is stored that comes behind a
//! refused one: they wait in their old order, and go on when there is room and the store has nothing of before.
//!
//! While it is full, what needs it waits in a line of its own, with what its producer sent behind it, whatever else it has to
//! wait for. The line for memory is for those whom memory can help.

use std::sync::Arc;

use super::Machine;
use super::line::{Arrived, Parked, Wanted};
use super::recording::OnStored;
use corriere_core::Message;
use corriere_core::provider::{ProviderError, SendMessage};

/// What is known of the store's room.
#[derive(Debug, Default)]
pub(super) struct StoreRoom {
    /// What is full, as long as sends wait for it.
    full: Option<Arc<str>>,
    /// Whether the store has said that there is room again.
    is_back: bool,
    /// Batches that the store has not answered and of which it may refuse sends; see [`OnStored::may_end_sends`].
    pub(super) under_way: usize,
}

impl StoreRoom {
    pub(super) fn is_full(&self) -> bool {
        self.full.is_some()
    }

    pub(super) fn reason(&self) -> Option<&str> {
        self.full.as_deref()
    }
}

impl Machine {
    /// The store has no room for what is sent.
    pub(super) fn store_is_full(&mut self, reason: &Arc<str>) {
        self.store_room.full = Some(Arc::clone(reason));
        self.store_room.is_back = false;
        let is_stored = |parked: &&Parked| self.is_stored(parked.arrived.connection, &parked.send.message);
        let waiting = self.memory.line.iter().filter(is_stored);
        let waiting: Vec<Arrived> = waiting.map(|parked| parked.arrived).collect();
        for arrived in waiting {
            self.wait_for_store_from(arrived);
        }
    }

    /// The store has room again.
    pub(super) fn store_has_room(&mut self) {
        self.store_room.is_back = true;
        self.take_sends_again();
        self.move_again();
    }

    /// Has sends go on, once there is room and the store has answered all that it was given before.
    pub(super) fn take_sends_again(&mut self) {
        let room = &mut self.store_room;
        if room.is_back && room.under_way == 0 && room.full.take().is_some() {
            self.effects.takes_sends = true;
        }
    }

    /// Has what a producer sent from this one on wait for the store, as far as it waits for memory.
    fn wait_for_store_from(&mut self, arrived: Arrived) {
        for mut parked in self.memory.line.take_from(arrived.producer_key(), arrived.number) {
            parked.wants = Wanted::Store;
            self.stand_in_line(parked);
        }
    }

    /// The store had no room for a send: it waits where it would have waited if that had been known.
    pub(super) fn wait_again(&mut self, arrived: Arrived, message: &Arc<Message>) {
        if !self.connections.contains_key(&arrived.connection) {
            // It was never accepted, and ends with its connection.
            self.confirm(arrived.ticket, Err(ProviderError::Lost));
            return;
        }
        if arrived.deadline > self.now {
            self.wait_for_store_from(arrived);
        }
        let (producer, message) = (arrived.producer, Arc::clone(message));
        let send = SendMessage { producer, message, transaction: None, deadline: None };
        self.park(arrived, send, Wanted::Store);
    }
}

impl OnStored {
    /// Whether it is of a send, which the store may have no room for.
    pub(super) fn is_of_send(&self) -> bool {
        matches!(self, Self::Sent { .. } | Self::Appended { .. })
    }

    /// Whether the store may take no sends any more for want of room with it: also what an operator copies, or brings to a topic, is
    /// a send to the store.
    pub(super) fn may_end_sends(&self) -> bool {
        self.is_of_send() || matches!(self, Self::Carried { .. })
    }
}

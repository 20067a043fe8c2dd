//! What an operator does.

use corriere_broker::machine::{Action, Input, Order, Shown, Ticket};
use corriere_core::Destination;
use corriere_tests::model::{Judgement, id_of};

use super::World;

impl World {
    /// Does something with every so many-th message of a queue, as they were sent.
    pub(crate) fn manage(&mut self, queue: &Destination, action: Action, every: u64) -> Judgement {
        let Some(page) = self.machine.look_into(queue) else { return Ok(()) };
        let shown = self.machine.show(queue, page, usize::MAX).map(|(shown, _)| shown).unwrap_or_default();
        let mut messages = Vec::new();
        for Shown { location, body, .. } in shown {
            let message = body.or_else(|| self.model.durable().message(location.stored()).cloned());
            let message = message.expect("it is in memory or stored");
            if id_of(&message).sequence.is_multiple_of(every) {
                messages.push((location, message));
            }
        }
        if matches!(action, Action::Copy(_)) && self.can_load {
            // Of several it would not be known for which of them there was memory.
            messages.truncate(1);
        }
        self.ledger.managed(messages.iter().map(|(_, message)| id_of(message)));
        let (ticket, queue) = (Ticket(self.number()), queue.clone());
        self.input(Input::Manage { ticket, order: Order { queue, action, messages } })
    }

    /// Changes the prefetch of a queue that is there.
    pub(crate) fn set_prefetch(&mut self, queue: &Destination, prefetch: u32) -> Judgement {
        if queue.is_topic() || self.machine.counts(queue).is_none() {
            return Ok(());
        }
        self.input(Input::SetPrefetch { queue: queue.clone(), prefetch })
    }
}

//! The step: inputs in their order, and what comes of them.

use corriere_core::Timestamp;
use corriere_core::provider::{Cause, Command, Confirmation, ProviderError};

use super::Machine;
use super::connection::Connection;
use super::durable::Making;
use super::effects::{ConnectionKey, Effects, Input, Ticket};
use super::time_index::Timer;
use super::transaction::unknown;

impl Machine {
    /// Takes one input and says what is to be done. `now` never goes back: an earlier moment counts as the latest.
    ///
    /// Whatever is due by `now` happens before the input, with or without a [`Input::Tick`].
    pub fn step(&mut self, now: Timestamp, input: Input) -> Effects {
        self.step_all(now, [input])
    }

    /// Takes several inputs of one moment, in their order, as if one came after the other.
    pub fn step_all(&mut self, now: Timestamp, inputs: impl IntoIterator<Item = Input>) -> Effects {
        self.now = self.now.max(now);
        self.fire_timers();
        for input in inputs {
            // What was stored becomes visible together, before the next command is looked at or at the end.
            let is_end_of_batch = matches!(input, Input::Stored { .. });
            if !is_end_of_batch {
                self.settle_down();
            }
            self.take(input);
            if !is_end_of_batch {
                self.settle_down();
                self.confirm_served();
            }
            self.end_batch();
        }
        self.settle_down();
        self.confirm_served();
        self.finish()
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Connect { connection, identity, client_id } => {
                self.connections.entry(connection).or_insert_with(|| Connection::new(identity, client_id));
            }
            Input::Command { connection, ticket, command } => {
                if self.connections.contains_key(&connection) {
                    self.command(connection, ticket, command);
                } else {
                    self.confirm(ticket, Err(ProviderError::Lost));
                }
            }
            Input::Vanished { connection } => {
                self.end_connection(connection, &Cause::failure("the connection of its consumer was lost"));
            }
            Input::Stored { batch, outcome } => self.stored_batch(batch, &outcome),
            Input::Loaded { messages } => self.loaded(messages),
            Input::StoreFull { reason } => self.store_is_full(&reason),
            Input::StoreRoom => self.store_has_room(),
            Input::Manage { ticket, order } => self.manage(ticket, order),
            Input::SetPrefetch { queue, prefetch } => self.set_prefetch(&queue, prefetch),
            Input::Tick => {}
        }
    }

    fn fire_timers(&mut self) {
        while let Some(timer) = self.timers.pop_due(self.now) {
            match timer {
                Timer::SendDeadline(number) => self.parked_too_long(number),
                Timer::Expiry(queue, position) => self.expiry_is_due(queue, position),
                Timer::Redelivery(queue, position) => self.redelivery_is_due(queue, position),
                Timer::MoveAgain => self.move_again(),
                Timer::ClearMore => self.clear_some(),
            }
        }
        self.settle_down();
    }

    /// Admits and delivers until nothing more can be admitted or delivered. What memory has room for goes first: it
    /// may be more urgent than what is there.
    fn settle_down(&mut self) {
        loop {
            self.admit_parked();
            let Some(queue_key) = self.due_queues.pop_front() else {
                if self.shed_bodies() {
                    continue;
                }
                return;
            };
            if let Some(queue) = self.queues.get_mut(&queue_key) {
                queue.is_due = false;
                self.dispatch_queue(queue_key);
            }
        }
    }

    fn command(&mut self, connection: ConnectionKey, ticket: Ticket, command: Command) {
        let recorded = self.recorded();
        let outcome = match command {
            Command::Send(send) => return self.send(connection, ticket, send),
            Command::Acknowledge(ack) => return self.acknowledge(connection, ticket, &ack),
            Command::Commit { transaction, one_phase } => {
                return self.commit(connection, ticket, &transaction, one_phase);
            }
            Command::Prepare { transaction } => return self.prepare(connection, ticket, &transaction),
            Command::Recover => {
                let prepared = self.prepared_transactions();
                return self.confirm(ticket, Ok(Confirmation::Recovered(prepared)));
            }
            // Nothing is ever ended heuristically.
            Command::Forget { transaction } => Err(unknown(&transaction)),
            Command::End { transaction } => self.end_part(connection, &transaction),
            Command::HandedOver { subscription, number, mark } => {
                self.handed_over((connection, subscription), number, mark)
            }
            Command::Grant { subscription, credit } => self.grant((connection, subscription), credit),
            Command::ChangeWindow { subscription, prefetch, extension } => {
                let key = (connection, subscription);
                match self.change_subscription(key, |it| it.change_window(prefetch, extension)) {
                    Ok(()) => return self.confirm_when_served(key, ticket),
                    Err(error) => Err(error),
                }
            }
            Command::Drain { subscription } => return self.drain((connection, subscription), ticket),
            Command::Begin { transaction } => self.begin(connection, transaction),
            Command::Rollback { transaction, cause } => self.rollback(connection, &transaction, cause),
            // How its deliveries are acknowledged is the client's affair: what it says of each is enough here.
            Command::OpenSession { session, mode: _ } => self.open_session(connection, session),
            Command::CloseSession { session } => {
                let cause = Cause::failure("its session was closed before it was settled");
                self.close_session(connection, session, &cause)
            }
            Command::OpenProducer { producer, session, identity: _, destination } => {
                self.open_producer(connection, producer, session, destination.as_ref())
            }
            Command::CloseProducer { producer } => self.close_producer(connection, producer),
            Command::OpenSubscription(subscribe) => {
                let key = (connection, subscribe.subscription);
                match self.open_subscription(connection, ticket, *subscribe) {
                    Ok(Making::Done) => return self.confirm_when_served(key, ticket),
                    Ok(Making::WithStore) => return,
                    Err(error) => Err(error),
                }
            }
            Command::Unsubscribe { name } => self.unsubscribe(connection, &name),
            Command::CloseSubscription { subscription, last_handed_over } => {
                self.close_subscription((connection, subscription), last_handed_over)
            }
            Command::Close => {
                let cause = Cause::failure("its connection was closed before it was settled");
                self.end_connection(connection, &cause);
                Ok(())
            }
            Command::Browse { subscription, session, destination, selector } => {
                self.open_browser(connection, subscription, session, &destination, selector.is_some())
            }
            Command::CreateTemporary { destination } => {
                let outcome = self.create_temporary(connection, destination);
                return self.confirm(ticket, outcome);
            }
            Command::DeleteTemporary { destination } => self.delete_temporary(connection, &destination),
            Command::WatchEvents => {
                self.watch_temporaries(connection);
                Ok(())
            }
            _ => Err(ProviderError::Unknown { what: "command of this kind".to_owned() }),
        };
        match outcome {
            Ok(()) => self.confirm_when_stored(ticket, recorded),
            Err(error) => self.confirm(ticket, Err(error)),
        }
    }

    pub(super) fn confirm(&mut self, ticket: Ticket, outcome: Result<Confirmation, ProviderError>) {
        if let Some(done) = self.orders.remove(&ticket) {
            self.effects.managed.push((ticket, outcome.map(|_| done)));
        } else if ticket != Ticket::NOBODY {
            self.effects.confirmations.push((ticket, outcome));
        }
    }

    /// Hands out what this step came to.
    fn finish(&mut self) -> Effects {
        self.end_batch();
        self.note_attempts();
        for key in self.talking.drain(..) {
            if let Some(connection) = self.connections.get_mut(&key) {
                self.effects.deliveries.push((key, std::mem::take(&mut connection.outgoing)));
            }
        }
        self.effects.wake_at = self.timers.next();
        std::mem::take(&mut self.effects)
    }
}

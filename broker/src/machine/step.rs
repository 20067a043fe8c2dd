//! Inputs, effects, and the step between them.

use std::sync::Arc;

use corriere_core::id::ConnectionId;
use corriere_core::provider::{Cause, Command, Confirmation, Dispatch, Event, ProviderError};
use corriere_core::{Destination, Message, Timestamp};

use super::Machine;
use super::attempts::SlotNote;
use super::bodies::SetAside;
use super::connection::Connection;
use super::durable::Making;
use super::line::Arrived;
use super::management::Order;
use super::memory::Held;
use super::moving::Left;
use super::queue::QueueKey;
use super::sending::Sending;
use super::subscription::SubscriptionKey;
use super::time_index::Timer;
use super::transaction::{TransactionKey, unknown};
use super::two_phase::Ending;
use crate::operation_counts::OperationCounts;
use crate::store::{Arrival, StoreError, StoreOperation, StoredId};

/// A connection, numbered by the edge and never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionKey(pub u64);

/// Names the receipt of a command, numbered by the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

impl Ticket {
    /// Of a command for whose outcome nobody waits: it is not confirmed.
    pub const NOBODY: Self = Self(0);
}

/// Names a batch that was given to the store, counted by the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u64);

/// Something that happens to the broker.
#[derive(Debug)]
pub enum Input {
    /// A connection was made.
    Connect {
        /// Its key.
        connection: ConnectionKey,
        /// Its identity.
        identity: ConnectionId,
        /// Under which its durable subscriptions are kept; of no other connection that is there.
        client_id: Option<Arc<str>>,
    },
    /// A connection asks for something.
    Command {
        /// Which connection.
        connection: ConnectionKey,
        /// Its receipt.
        ticket: Ticket,
        /// What it asks.
        command: Command,
    },
    /// A connection ended without a word: the receipts of its commands are dropped, the rest is as if it had closed.
    Vanished {
        /// Which connection.
        connection: ConnectionKey,
    },
    /// The store is done with a batch.
    Stored {
        /// Which batch.
        batch: BatchId,
        /// Whether it is as safe as it has to be. Sends that there is no room for wait until there is.
        outcome: Result<(), StoreError>,
    },
    /// Messages of [`Effects::load`] have come, or cannot be read back.
    Loaded {
        /// Each with what became of it.
        messages: Vec<(StoredId, Result<Arc<Message>, StoreError>)>,
    },
    /// The store has no room for more messages: those that are sent wait.
    StoreFull {
        /// What is full.
        reason: Arc<str>,
    },
    /// The store has room again.
    StoreRoom,
    /// An operator does something with messages of a queue; answered in [`Effects::managed`].
    Manage {
        /// Its answer.
        ticket: Ticket,
        /// What is done.
        order: Order,
    },
    /// An operator changes the prefetch of a queue's policy, for those who left theirs to the broker.
    SetPrefetch {
        /// Whose.
        queue: Destination,
        /// From now on; 0 counts as 1.
        prefetch: u32,
    },
    /// The moment of [`Effects::wake_at`] has come.
    Tick,
}

/// Work for the edge, to be done in the order of the fields: what is delivered before it is confirmed has arrived
/// when the confirmation does.
#[derive(Debug, Default)]
pub struct Effects {
    /// Whether [`MessageStore::take_sends`](crate::store::MessageStore::take_sends) is to be called.
    pub takes_sends: bool,
    /// Batches for the store, each of which is answered by [`Input::Stored`].
    pub store: Vec<Batch>,
    /// What slots of [`MessageStore::note_attempt`](crate::store::MessageStore::note_attempt) say from now on.
    pub attempts: Vec<SlotNote>,
    /// Messages whose bodies are to be read back, each of which is answered by [`Input::Loaded`].
    pub load: Vec<StoredId>,
    /// Messages that could not be read back, to be told to who runs the broker.
    pub set_aside: Vec<SetAside>,
    /// Word of temporary destinations, and of windows that are others than a client asked for. It goes before the deliveries, so that nobody is delivered
    /// a message before he has heard of the destination that it is to be answered to.
    pub changes: Vec<(ConnectionKey, Event)>,
    /// Deliveries for the sinks of connections.
    pub deliveries: Vec<(ConnectionKey, Vec<Dispatch>)>,
    /// Browsers that have been shown all that there was.
    pub browse_ends: Vec<SubscriptionKey>,
    /// Word of slow consumers for the sinks of their connections.
    pub slow_consumers: Vec<(ConnectionKey, Event)>,
    /// Outcomes of commands.
    pub confirmations: Vec<(Ticket, Result<Confirmation, ProviderError>)>,
    /// What became of what operators did.
    pub managed: Vec<(Ticket, Result<OperationCounts, ProviderError>)>,
    /// When [`Input::Tick`] is due; `None` when nothing waits for time. It replaces what an earlier step said.
    pub wake_at: Option<Timestamp>,
}

/// Changes that the store makes as a whole.
#[derive(Debug)]
pub struct Batch {
    /// Its name.
    pub id: BatchId,
    /// The changes.
    pub operations: Vec<StoreOperation>,
    /// Whether anything goes on only when the store is done with it.
    pub is_awaited: bool,
}

/// What goes on when the store is done with a batch.
#[derive(Debug)]
pub(super) enum OnStored {
    /// The command is confirmed, if this was the last batch that it waited for.
    Confirm(Ticket),
    /// A send outside a transaction becomes visible and is confirmed.
    Sent { sending: Sending, arrived: Arrived },
    /// A dead letter becomes visible, or what it was stays where it came from, if the store has that.
    MovedIn { queue: QueueKey, held: Arc<Held>, left: Option<Box<Left>> },
    /// The same for what an operator moves or copies, of which the order of this ticket takes note.
    Carried { ticket: Ticket, sending: Sending, left: Option<Box<Left>> },
    /// A message that a transaction sends is known to the store.
    Appended { transaction: TransactionKey, stored: StoredId },
    /// What a transaction acknowledges is known to the store.
    Staged { transaction: TransactionKey },
    /// A consumer of a durable subscription that was made for it is told so, or ends with that.
    Subscribed { consumer: SubscriptionKey, queue: QueueKey, ticket: Ticket },
    /// A transaction takes effect, or is prepared.
    Ended { transaction: TransactionKey, ending: Ending, ticket: Ticket },
}

/// How many batches are recorded at a moment of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    batches: usize,
    moves: usize,
}

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

    /// Has the store do something. What it may refuse for want of room, and what ends a transaction of which it may have
    /// refused something, is in a batch of its own: nothing else must be refused with it.
    pub(super) fn record(&mut self, operation: StoreOperation) {
        let is_alone = |operation: &StoreOperation| {
            matches!(
                operation,
                StoreOperation::Append { .. }
                    | StoreOperation::Publish { .. }
                    | StoreOperation::CreateSubscription { .. }
                    | StoreOperation::Commit(_)
                    | StoreOperation::Prepare(_)
            )
        };
        if self.operations.last().is_some_and(|last| is_alone(last) || is_alone(&operation)) {
            self.close_recorded();
        }
        self.operations.push(operation);
    }

    /// Nothing more belongs to what was recorded last.
    fn close_recorded(&mut self) {
        if !self.operations.is_empty() {
            self.recorded.push((std::mem::take(&mut self.operations), std::mem::take(&mut self.on_stored)));
        }
    }

    /// What is recorded for the store so far of this input; what comes next is in other batches.
    pub(super) fn recorded(&mut self) -> Recorded {
        self.close_recorded();
        Recorded { batches: self.recorded.len(), moves: self.moves.fresh() }
    }

    /// Confirms a command that has taken effect, once the store knows of what it recorded since then.
    pub(super) fn confirm_when_stored(&mut self, ticket: Ticket, since: Recorded) {
        let until = self.recorded();
        if until == since {
            self.confirm(ticket, Ok(Confirmation::Done));
        } else if ticket != Ticket::NOBODY {
            self.stored_for = Some((ticket, since, until));
        }
    }

    fn stored_batch(&mut self, batch: BatchId, outcome: &Result<(), StoreError>) {
        let told =
            outcome.as_ref().map_err(|error| ProviderError::Store { reason: error.to_string() }).copied();
        let mut is_put_off = false;
        let waiting = self.batches.remove(&batch).unwrap_or_default();
        self.store_room.under_way -= usize::from(waiting.first().is_some_and(OnStored::may_end_sends));
        for waiting in waiting {
            match waiting {
                OnStored::Confirm(ticket) => {
                    self.confirm_if_last(ticket, told.clone().err().filter(|_| !is_put_off));
                }
                OnStored::Sent { sending, arrived } => self.sent(sending, arrived, outcome),
                OnStored::MovedIn { queue, held, left } if outcome.is_ok() => {
                    self.enqueue(queue, held, Arrival::MovedIn);
                    left.into_iter().for_each(|left| self.has_arrived(*left));
                }
                OnStored::MovedIn { queue, held, left } => {
                    is_put_off = matches!(outcome, Err(StoreError::Full { .. }));
                    self.put_off(queue, held, left);
                }
                OnStored::Carried { ticket, sending, left } => {
                    is_put_off = matches!(outcome, Err(StoreError::Full { .. }));
                    self.carried(ticket, sending, left, outcome);
                }
                OnStored::Appended { transaction, stored } if outcome.is_ok() => {
                    self.appended(&transaction, stored);
                }
                OnStored::Appended { transaction, .. } | OnStored::Staged { transaction } => {
                    if let Err(error) = &told {
                        self.staging_failed(&transaction, error);
                    }
                }
                OnStored::Subscribed { consumer, queue, ticket } => {
                    self.subscribed(consumer, queue, ticket, told.clone());
                }
                OnStored::Ended { transaction, ending, ticket } => {
                    self.ended(&transaction, ending, ticket, told.clone());
                }
            }
        }
        self.take_sends_again();
    }

    fn confirm_if_last(&mut self, ticket: Ticket, error: Option<ProviderError>) {
        let Some((left, failed)) = self.confirming.get_mut(&ticket) else { return };
        *left -= 1;
        *failed = failed.take().or(error);
        if *left == 0
            && let Some((_, failed)) = self.confirming.remove(&ticket)
        {
            self.confirm(ticket, failed.map_or(Ok(Confirmation::Done), Err));
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

    /// Gives the store what was recorded.
    fn end_batch(&mut self) {
        self.close_recorded();
        let mut batches = std::mem::take(&mut self.recorded);
        // Each by itself: one that there is no room for must not keep anything else from being stored.
        let mut moves = self.moves.take_fresh();
        if let Some((ticket, since, until)) = self.stored_for.take() {
            let own = batches[since.batches..until.batches].iter_mut();
            let own = own.chain(&mut moves[since.moves..until.moves]);
            // What is sent, and what ends a transaction, has somebody of its own who waits for it.
            let own = own.filter(|(_, on_stored)| !on_stored.first().is_some_and(OnStored::has_its_own));
            let count = own.map(|(_, on_stored)| on_stored.push(OnStored::Confirm(ticket))).count();
            if count == 0 {
                self.confirm(ticket, Ok(Confirmation::Done));
            } else {
                self.confirming.insert(ticket, (count, None));
            }
        }
        batches.append(&mut moves);
        for (operations, on_stored) in batches {
            self.store_room.under_way += usize::from(on_stored.first().is_some_and(OnStored::may_end_sends));
            let is_awaited = !on_stored.is_empty();
            if !is_awaited
                && let Some(last) = self.effects.store.last_mut()
                && !last.is_awaited
                && last.operations.iter().chain(&operations).all(ends_a_message)
            {
                last.operations.extend(operations);
                continue;
            }
            let id = BatchId(self.next_batch);
            self.next_batch += 1;
            self.batches.insert(id, on_stored);
            self.effects.store.push(Batch { id, operations, is_awaited });
        }
    }
}

impl OnStored {
    /// Whether somebody else waits for it than the command in whose course it was recorded: of a transaction that ends as a send of
    /// it waits no more.
    fn has_its_own(&self) -> bool {
        self.is_of_send() || matches!(self, Self::Ended { .. })
    }
}

fn ends_a_message(operation: &StoreOperation) -> bool {
    matches!(operation, StoreOperation::Remove { transaction: None, .. })
}

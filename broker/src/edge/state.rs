//! What the edge's lock guards: the machine, the effects that are queued, and who waits for them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use corriere_core::provider::{
    Command, Confirmation, Confirmer, ConnectOptions, DeliverySink, Dispatch, Event, ProviderError, Receipt,
};
use corriere_core::{ConnectionId, Timestamp};
use tokio::sync::oneshot;

use super::confirmers::Confirmers;
use super::inbox::Posted;
use crate::machine::{Batch, ConnectionKey, Effects, Input, Machine, SetAside, Ticket};
use crate::store::StoredId;

pub(super) type Outcome = Result<Confirmation, ProviderError>;

/// What an operator is told.
pub(super) type Managed = Result<crate::OperationCounts, ProviderError>;

/// The operator who waits for that.
pub(super) type Told = oneshot::Sender<Managed>;

#[derive(Debug)]
pub(super) struct State {
    pub(super) machine: Machine,
    pub(super) links: BTreeMap<ConnectionKey, Link>,
    /// The other ends of receipts that were handed out unfulfilled.
    pub(super) confirmers: Confirmers,
    /// Operators who wait for what comes of their orders.
    operators: BTreeMap<Ticket, Told>,
    pub(super) queued: VecDeque<Work>,
    /// Empty, for its memory: what is posted next.
    pub(super) taken: Vec<Posted>,
    /// The command of the call that steps, and its outcome once it is known.
    own: Option<(Ticket, Option<Outcome>)>,
    last_connection: u64,
    pub(super) last_ticket: u64,
    /// Whether it was said once that memory, or the store, is full.
    pub(super) has_warned_of_memory: bool,
    pub(super) has_warned_of_store: bool,
    /// When the machine wants to be woken, and when the timekeeper will.
    pub(super) wake_at: Option<Timestamp>,
    pub(super) armed_for: Option<Timestamp>,
    /// Why it stopped, for whoever comes after that.
    pub(super) stopped: Option<ProviderError>,
    /// How far the store's end has come.
    pub(super) store_is: StoreIs,
}

/// Whether the store takes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreIs {
    Open,
    Closing,
    Closed,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) sink: Arc<dyn DeliverySink>,
    pub(super) client_id: Option<Arc<str>>,
    pub(super) identity: ConnectionId,
}

/// One effect, with all that is needed to perform it without the lock.
#[derive(Debug)]
pub(super) enum Work {
    Store(Batch),
    /// Has the store take sends again.
    TakeSends,
    Load(Vec<StoredId>),
    /// Says that a message cannot be read back.
    SetAside(SetAside),
    Deliver(ConnectionKey, Arc<dyn DeliverySink>, Vec<Dispatch>),
    Notify(Arc<dyn DeliverySink>, Event),
    Confirm(Confirmer, Outcome),
    /// Tells an operator.
    Tell(Told, Managed),
    /// Says that a send was refused because memory or the store is full.
    Warn(ProviderError),
    /// Says why the broker has failed.
    Fail(ProviderError),
    /// Lets go of a sink, whose own end may call back.
    Release(Arc<dyn DeliverySink>),
    /// Says by their end that the connection is lost.
    Drop(Vec<Confirmer>),
}

impl State {
    pub(super) fn new(machine: Machine) -> Self {
        Self {
            machine,
            links: BTreeMap::new(),
            confirmers: Confirmers::default(),
            operators: BTreeMap::new(),
            queued: VecDeque::new(),
            taken: Vec::new(),
            own: None,
            last_connection: 0,
            last_ticket: 0,
            has_warned_of_memory: false,
            has_warned_of_store: false,
            wake_at: None,
            armed_for: None,
            stopped: None,
            store_is: StoreIs::Open,
        }
    }

    /// Takes in a connection, and says under which key, and what the machine is to be told.
    pub(super) fn link(
        &mut self,
        options: ConnectOptions,
        sink: Arc<dyn DeliverySink>,
    ) -> Result<(ConnectionKey, Input), ProviderError> {
        if let Some(error) = &self.stopped {
            return Err(error.clone());
        }
        let ConnectOptions { connection: identity, client_id, .. } = options;
        if let Some(client_id) = &client_id
            && let Some(holder) = self.links.values().find(|link| link.client_id.as_ref() == Some(client_id))
        {
            return Err(ProviderError::ClientIdInUse {
                client_id: client_id.to_string(),
                holder: holder.identity.to_string(),
            });
        }
        self.last_connection += 1;
        let connection = ConnectionKey(self.last_connection);
        self.links
            .insert(connection, Link { sink, client_id: client_id.clone(), identity: identity.clone() });
        Ok((connection, Input::Connect { connection, identity, client_id }))
    }

    /// What the machine is to be given of something that was posted; `None` where it is over with an answer.
    pub(super) fn input(&mut self, posted: Posted) -> Option<Input> {
        match posted {
            Posted::Command { connection, command, confirmer } => {
                if let Some(error) = self.refusal(connection) {
                    self.queued.extend(confirmer.map(|confirmer| Work::Confirm(confirmer, Err(error))));
                    return None;
                }
                let ticket = confirmer.map_or(Ticket::NOBODY, |confirmer| {
                    let ticket = self.next_ticket();
                    self.confirmers.insert(connection, ticket, confirmer);
                    ticket
                });
                if matches!(command, Command::Close) {
                    self.unlink(connection);
                }
                Some(Input::Command { connection, ticket, command })
            }
            Posted::Manage { order, told } => {
                if let Some(error) = self.stopped.clone() {
                    self.queued.push_back(Work::Tell(told, Err(error)));
                    return None;
                }
                let ticket = self.next_ticket();
                self.operators.insert(ticket, told);
                Some(Input::Manage { ticket, order })
            }
            Posted::Vanished(connection) => {
                self.unlink(connection);
                let confirmers = self.confirmers.take_of(connection);
                self.queued.push_back(Work::Drop(confirmers));
                Some(Input::Vanished { connection })
            }
            Posted::Input(input) => Some(input),
        }
    }

    /// The same for a command of the call that steps, which is told the outcome if that is known after the step.
    pub(super) fn own(
        &mut self,
        connection: ConnectionKey,
        command: Command,
    ) -> Result<(Ticket, Input), ProviderError> {
        self.refusal(connection).map_or(Ok(()), Err)?;
        let ticket = self.next_ticket();
        self.own = Some((ticket, None));
        Ok((ticket, Input::Command { connection, ticket, command }))
    }

    /// The receipt of [`State::own`], after the step.
    pub(super) fn own_receipt(&mut self, connection: ConnectionKey, ticket: Ticket) -> Receipt {
        if let Some((_, Some(outcome))) = self.own.take() {
            return Receipt::ready(outcome);
        }
        if let Some(error) = &self.stopped {
            return Receipt::ready(Err(error.clone()));
        }
        let (confirmer, receipt) = Receipt::pending();
        self.confirmers.insert(connection, ticket, confirmer);
        receipt
    }

    /// Why a connection can ask for nothing more.
    fn refusal(&self, connection: ConnectionKey) -> Option<ProviderError> {
        let is_linked = self.links.contains_key(&connection);
        self.stopped.clone().or((!is_linked).then_some(ProviderError::Lost))
    }

    fn next_ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    /// Queues the effects of a step.
    pub(super) fn queue(&mut self, effects: Effects) {
        self.wake_at = effects.wake_at;
        if effects.takes_sends {
            self.queued.push_back(Work::TakeSends);
        }
        self.queued.extend(effects.store.into_iter().map(Work::Store));
        if !effects.load.is_empty() {
            self.queued.push_back(Work::Load(effects.load));
        }
        self.queued.extend(effects.set_aside.into_iter().map(Work::SetAside));
        for (connection, event) in effects.changes {
            self.queue_event(connection, event);
        }
        for (connection, batch) in effects.deliveries {
            if let Some(link) = self.links.get(&connection) {
                self.queued.push_back(Work::Deliver(connection, Arc::clone(&link.sink), batch));
            }
        }
        for (ticket, outcome) in effects.managed {
            if let Some(told) = self.operators.remove(&ticket) {
                self.queued.push_back(Work::Tell(told, outcome));
            }
        }
        for (connection, subscription) in effects.browse_ends {
            self.queue_event(connection, Event::BrowseEnded { subscription });
        }
        for (connection, event) in effects.slow_consumers {
            self.queue_event(connection, event);
        }
        for (ticket, outcome) in effects.confirmations {
            let was_said = match &outcome {
                Err(ProviderError::MemoryFull { .. }) => Some(&mut self.has_warned_of_memory),
                Err(ProviderError::StoreFull { .. }) => Some(&mut self.has_warned_of_store),
                _ => None,
            };
            if let (Some(was_said), Err(error)) = (was_said, &outcome)
                && !std::mem::replace(was_said, true)
            {
                self.queued.push_back(Work::Warn(error.clone()));
            }
            if let Some(confirmer) = self.confirmers.take(ticket) {
                self.queued.push_back(Work::Confirm(confirmer, outcome));
            } else if let Some((own, answer)) = &mut self.own
                && *own == ticket
            {
                *answer = Some(outcome);
            }
        }
    }

    fn queue_event(&mut self, connection: ConnectionKey, event: Event) {
        if let Some(link) = self.links.get(&connection) {
            self.queued.push_back(Work::Notify(Arc::clone(&link.sink), event));
        }
    }

    pub(super) fn unlink(&mut self, connection: ConnectionKey) {
        if let Some(link) = self.links.remove(&connection) {
            self.queued.push_back(Work::Release(link.sink));
        }
    }

    /// Ends everything. Who waits is told that the connection is lost, or what failed.
    pub(super) fn stop(&mut self, error: ProviderError, is_failure: bool) {
        if self.stopped.is_none() {
            let waiting = self.confirmers.take_all();
            if is_failure {
                let told = waiting.into_iter().map(|confirmer| Work::Confirm(confirmer, Err(error.clone())));
                self.queued.extend(told);
            } else {
                self.queued.push_back(Work::Drop(waiting));
            }
            let operators = std::mem::take(&mut self.operators).into_values();
            self.queued.extend(operators.map(|told| Work::Tell(told, Err(error.clone()))));
            self.stopped = Some(error);
        }
        for link in std::mem::take(&mut self.links).into_values() {
            self.queued.push_back(Work::Notify(link.sink, Event::Lost { error: ProviderError::Lost }));
        }
    }
}

//! What the edge's lock guards: the machine, the effects that are queued, and who waits for them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::thread::ThreadId;

use corriere_core::provider::{
    Confirmation, Confirmer, DeliverySink, Dispatch, Event, ProviderError, Receipt,
};
use corriere_core::{ConnectionId, Timestamp};

use super::confirmers::Confirmers;
use crate::machine::SetAside;
use crate::machine::{BatchId, ConnectionKey, Effects, Machine, Ticket};
use crate::store::{StoreOperation, StoredId};

pub(super) type Outcome = Result<Confirmation, ProviderError>;

#[derive(Debug)]
pub(super) struct State {
    pub(super) machine: Machine,
    pub(super) links: BTreeMap<ConnectionKey, Link>,
    /// The other ends of receipts that were handed out unfulfilled.
    pub(super) confirmers: Confirmers,
    pub(super) queued: VecDeque<Work>,
    /// How many effects were ever performed, the one at work included.
    pub(super) performed: u64,
    /// Who performs what is queued.
    pub(super) performer: Option<ThreadId>,
    /// The command of the call that performs, whose receipt is not handed out yet.
    pub(super) own: Option<Own>,
    pub(super) last_connection: u64,
    pub(super) last_ticket: u64,
    /// Whether it was said once that memory, or the store, is full.
    pub(super) has_warned_of_memory: bool,
    pub(super) has_warned_of_store: bool,
    /// When the machine wants to be woken, and when the timekeeper will.
    pub(super) wake_at: Option<Timestamp>,
    pub(super) armed_for: Option<Timestamp>,
    /// Why it stopped, for whoever comes after that.
    pub(super) stopped: Option<ProviderError>,
    /// Whether somebody waits for what the present step comes to.
    pub(super) is_awaited: bool,
    /// Whether the store was given something since it was last asked to lead.
    pub(super) has_submitted: bool,
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

/// A command whose receipt is not handed out yet.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) ticket: Ticket,
    /// Once it is known: with how many effects have to be performed before it may be told.
    pub(super) outcome: Option<(Outcome, u64)>,
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
    Store {
        batch: BatchId,
        operations: Vec<StoreOperation>,
        /// Whether somebody waits until it is as safe as it is to be.
        is_awaited: bool,
    },
    /// Has the store take sends again.
    TakeSends,
    Load(Vec<StoredId>),
    /// Says that a message cannot be read back.
    SetAside(SetAside),
    Deliver(ConnectionKey, Arc<dyn DeliverySink>, Vec<Dispatch>),
    Notify(Arc<dyn DeliverySink>, Event),
    Confirm(Confirmer, Outcome),
    /// Says that a send was refused because memory or the store is full.
    Warn(ProviderError),
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
            queued: VecDeque::new(),
            performed: 0,
            performer: None,
            own: None,
            last_connection: 0,
            last_ticket: 0,
            has_warned_of_memory: false,
            has_warned_of_store: false,
            wake_at: None,
            armed_for: None,
            stopped: None,
            is_awaited: true,
            has_submitted: false,
            store_is: StoreIs::Open,
        }
    }

    /// A receipt that is fulfilled later.
    pub(super) fn hand_out(&mut self, connection: ConnectionKey, ticket: Ticket) -> Receipt {
        let (confirmer, receipt) = Receipt::pending();
        self.confirmers.insert(connection, ticket, confirmer);
        receipt
    }

    /// Queues the effects of a step.
    pub(super) fn queue(&mut self, effects: Effects) {
        self.wake_at = effects.wake_at;
        if effects.takes_sends {
            self.queued.push_back(Work::TakeSends);
        }
        for (batch, operations) in effects.store {
            let is_awaited = self.is_awaited;
            self.queued.push_back(Work::Store { batch, operations, is_awaited });
        }
        if !effects.load.is_empty() {
            self.queued.push_back(Work::Load(effects.load));
        }
        self.queued.extend(effects.set_aside.into_iter().map(Work::SetAside));
        for (connection, batch) in effects.deliveries {
            if let Some(link) = self.links.get(&connection) {
                self.queued.push_back(Work::Deliver(connection, Arc::clone(&link.sink), batch));
            }
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
            } else if let Some(own) = &mut self.own
                && own.ticket == ticket
            {
                own.outcome = Some((outcome, self.performed + self.queued.len() as u64));
            }
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
            self.stopped = Some(error);
        }
        for link in std::mem::take(&mut self.links).into_values() {
            self.queued.push_back(Work::Notify(link.sink, Event::Lost { error: ProviderError::Lost }));
        }
    }
}

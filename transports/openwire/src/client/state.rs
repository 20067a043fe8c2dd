//! What a connection knows, all of it under one lock: its sessions, producers and subscriptions, what it waits for, and what is to
//! be told to the client.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use corriere_core::TransactionId;
use corriere_core::id::{ProducerId, SessionId, SubscriptionId};
use corriere_core::provider::{
    Capabilities, Capability, Confirmation, Confirmer, Dispatch, Event, ProviderError, Receipt,
};
use tokio::time::Instant;

use super::error::About;
use super::subscription::Subscription;
use crate::codec::Structure;
use crate::codec::structures::{
    ConnectionId, ConsumerId, ProducerId as WireProducerId, SessionId as WireSessionId,
};
use crate::link::Outbox;

/// Who is at the other end, and how this connection is called there.
#[derive(Debug)]
pub(super) struct Peer {
    /// Its address.
    pub(super) url: String,
    /// This connection.
    pub(super) connection: ConnectionId,
    /// Under which name its durable subscriptions are kept.
    pub(super) client_id: Option<Arc<str>>,
    /// Whether it counts and delays redelivery itself.
    pub(super) redelivers: bool,
}

impl Peer {
    /// What can be had of it: redelivery is counted by a broker of Corriere, and names and passwords are checked by ActiveMQ.
    pub(super) fn capabilities(&self) -> Capabilities {
        let own = if self.redelivers { Capability::BrokerRedelivery } else { Capability::Authentication };
        Capabilities::of(&[
            Capability::ExplicitCredit,
            Capability::IndividualAcknowledge,
            Capability::DupsOkAcknowledge,
            Capability::Browse,
            Capability::TemporaryDestinations,
            Capability::DurableSubscriptions,
            Capability::Events,
            own,
        ])
    }
}

/// A command to be written.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) structure: Structure,
    /// Confirmed when it is written.
    pub(super) written: Option<Confirmer>,
}

/// A connection.
#[derive(Debug)]
pub(super) struct State {
    pub(super) peer: Peer,
    outbox: Arc<Outbox<Outgoing>>,
    last_command: i32,
    /// What waits for an answer, by the number of the command.
    waiting: HashMap<i32, Waiting>,
    pub(super) sessions: BTreeSet<SessionId>,
    pub(super) producers: BTreeMap<ProducerId, Producer>,
    pub(super) subscriptions: BTreeMap<SubscriptionId, Subscription>,
    /// What was acknowledged in each open transaction.
    pub(super) transactions: HashMap<TransactionId, Vec<Acknowledged>>,
    /// When to look at which subscription again.
    timers: BTreeSet<(Instant, SubscriptionId)>,
    /// Bytes of messages that were sent since an answer was asked for.
    pub(super) unanswered: usize,
    pub(super) effects: Effects,
    /// Why there is no connection any more.
    end: Option<ProviderError>,
    pub(super) is_closing: bool,
}

/// A producer that is open.
#[derive(Debug)]
pub(super) struct Producer {
    pub(super) id: WireProducerId,
    pub(super) session: SessionId,
}

/// Deliveries of one subscription that were acknowledged in a transaction, by their arrival.
#[derive(Debug)]
pub(super) struct Acknowledged {
    pub(super) subscription: SubscriptionId,
    pub(super) arrivals: Vec<u64>,
}

/// Who waits for an answer, and what it means.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) confirmer: Option<Confirmer>,
    pub(super) about: About,
    pub(super) then: Then,
}

/// What follows from an answer.
#[derive(Debug)]
pub(super) enum Then {
    /// The confirmation of this.
    Confirm(Confirmation),
    /// A subscription is there, or is not.
    Opened(SubscriptionId),
    /// A transaction is over.
    Ended { acknowledged: Vec<Acknowledged>, commits: bool },
    /// A pull was answered.
    Pulled(SubscriptionId),
    /// The peer tells of temporary destinations from now on.
    Watching,
    /// The connection is closed.
    Closed,
}

/// What the client is to be told, in this order, by the one task that calls its sink.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) deliveries: Vec<Dispatch>,
    pub(super) events: Vec<Event>,
    pub(super) confirmed: Vec<(Confirmer, Result<Confirmation, ProviderError>)>,
}

impl Effects {
    pub(super) fn is_empty(&self) -> bool {
        self.deliveries.is_empty() && self.events.is_empty() && self.confirmed.is_empty()
    }
}

impl State {
    pub(super) fn new(peer: Peer, outbox: Arc<Outbox<Outgoing>>, last_command: i32) -> Self {
        Self {
            peer,
            outbox,
            last_command,
            waiting: HashMap::new(),
            sessions: BTreeSet::new(),
            producers: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            transactions: HashMap::new(),
            timers: BTreeSet::new(),
            unanswered: 0,
            effects: Effects::default(),
            end: None,
            is_closing: false,
        }
    }

    /// Sends a command that nobody answers.
    pub(super) fn tell(&mut self, structure: impl Into<Structure>) {
        self.put(structure.into(), None);
    }

    /// Sends a command whose receipt is confirmed when it is written.
    pub(super) fn write(&mut self, structure: impl Into<Structure>) -> Receipt {
        let (confirmer, receipt) = Receipt::pending();
        self.put(structure.into(), Some(confirmer));
        receipt
    }

    /// Sends a command that asks for an answer.
    pub(super) fn ask(&mut self, structure: impl Into<Structure>, about: About, then: Then) -> Receipt {
        let (confirmer, receipt) = Receipt::pending();
        self.expect(structure, Some(confirmer), about, then);
        receipt
    }

    /// As [`State::ask`], for whoever waits already, or nobody.
    pub(super) fn expect(
        &mut self,
        structure: impl Into<Structure>,
        confirmer: Option<Confirmer>,
        about: About,
        then: Then,
    ) {
        let structure = structure.into();
        debug_assert!(structure.response_required(), "the peer would not answer {}", structure.name());
        let id = self.put(structure, None);
        self.waiting.insert(id, Waiting { confirmer, about, then });
    }

    fn put(&mut self, mut structure: Structure, written: Option<Confirmer>) -> i32 {
        self.last_command = self.last_command.wrapping_add(1);
        structure.set_command_id(self.last_command);
        // Once it is closed nothing is written; who waits is told when the connection ends.
        self.outbox.push(Outgoing { structure, written });
        self.last_command
    }

    /// Nothing more is to be written.
    pub(super) fn close_outbox(&self) {
        self.outbox.close();
    }

    /// Who waits for the answer to a command.
    pub(super) fn answered(&mut self, command: i32) -> Option<Waiting> {
        self.waiting.remove(&command)
    }

    /// Has a subscription looked at again at these moments.
    pub(super) fn look_again(&mut self, subscription: SubscriptionId, moments: Vec<Instant>) {
        self.timers.extend(moments.into_iter().map(|moment| (moment, subscription)));
    }

    /// When something is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.timers.first().map(|(moment, _)| *moment)
    }

    /// The subscriptions that are due.
    pub(super) fn take_due(&mut self, now: Instant) -> BTreeSet<SubscriptionId> {
        let mut due = BTreeSet::new();
        while let Some((moment, subscription)) = self.timers.pop_first() {
            if moment > now {
                self.timers.insert((moment, subscription));
                break;
            }
            due.insert(subscription);
        }
        due
    }

    /// Why nothing can be done any more.
    pub(super) fn ended(&self) -> Option<ProviderError> {
        self.end.clone()
    }

    /// Ends it: whoever waits is told so.
    pub(super) fn end(&mut self, error: ProviderError) {
        if self.end.is_some() {
            return;
        }
        let is_closing = self.is_closing;
        let told = if is_closing { ProviderError::Lost } else { error };
        self.end = Some(told.clone());
        // With it goes who waits until something is written.
        self.outbox.abandon();
        for (_, Waiting { confirmer, then, .. }) in std::mem::take(&mut self.waiting) {
            let Some(confirmer) = confirmer else { continue };
            // However it ends, it is closed.
            let is_closed = matches!(then, Then::Closed);
            let outcome = if is_closed { Ok(Confirmation::Done) } else { Err(told.clone()) };
            self.effects.confirmed.push((confirmer, outcome));
        }
        for (_, mut subscription) in std::mem::take(&mut self.subscriptions) {
            let drains = subscription.take_drains();
            self.effects.confirmed.extend(drains.into_iter().map(|confirmer| (confirmer, Err(told.clone()))));
        }
        if !is_closing {
            self.effects.events.push(Event::Lost { error: told });
        }
    }

    pub(super) fn session_id(&self, session: SessionId) -> WireSessionId {
        WireSessionId {
            connection_id: Arc::clone(&self.peer.connection.value),
            value: session.0.cast_signed(),
        }
    }

    pub(super) fn consumer_id(&self, session: SessionId, subscription: SubscriptionId) -> ConsumerId {
        ConsumerId {
            connection_id: Arc::clone(&self.peer.connection.value),
            session_id: session.0.cast_signed(),
            value: subscription.0.cast_signed(),
        }
    }
}

/// What a command names that is not there.
pub(super) fn unknown(what: impl std::fmt::Display) -> ProviderError {
    ProviderError::Unknown { what: what.to_string() }
}

//! Inputs, effects, and the step between them.

use corriere_core::id::ConnectionId;
use corriere_core::provider::{Command, Confirmation, Dispatch, Event, ProviderError};
use corriere_core::{Destination, Timestamp};

use crate::counts::Counts;
use crate::settings::Settings;
use crate::store::{StoreError, StoreOperation};

/// A connection, numbered by the edge and never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionKey(pub u64);

/// Names the receipt of a command, numbered by the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

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
        /// Whether it is durable.
        outcome: Result<(), StoreError>,
    },
    /// The moment of [`Effects::wake_at`] has come.
    Tick,
}

/// Work for the edge, to be done in the order of the fields: what is delivered before it is confirmed has arrived
/// when the confirmation does.
#[derive(Debug, Default)]
pub struct Effects {
    /// Batches for the store, each of which is answered by [`Input::Stored`].
    pub store: Vec<(BatchId, Vec<StoreOperation>)>,
    /// Deliveries for the sinks of connections.
    pub deliveries: Vec<(ConnectionKey, Vec<Dispatch>)>,
    /// Word for the sinks of connections.
    pub events: Vec<(ConnectionKey, Event)>,
    /// Outcomes of commands.
    pub confirmations: Vec<(Ticket, Result<Confirmation, ProviderError>)>,
    /// When [`Input::Tick`] is due; `None` when nothing waits for time. It replaces what an earlier step said.
    pub wake_at: Option<Timestamp>,
}

/// The broker's whole delivery state.
#[derive(Debug)]
pub struct Machine {}

impl Machine {
    /// A broker without any destination.
    #[must_use]
    pub fn new(_settings: Settings) -> Self {
        todo!()
    }

    /// Takes one input and says what is to be done. `now` never goes back: an earlier moment counts as the latest.
    pub fn step(&mut self, _now: Timestamp, _input: Input) -> Effects {
        todo!()
    }

    /// The counts of a queue, or of all subscriptions of a topic together.
    #[must_use]
    pub fn counts(&self, _destination: &Destination) -> Option<Counts> {
        todo!()
    }
}

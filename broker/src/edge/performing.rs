//! Performing effects: what the store and the sinks are called with, and what a panic of theirs costs.

use corriere_core::panic::caught;
use corriere_core::provider::{Event, ProviderError};

use super::Edge;
use super::inbox::Posted;
use super::state::Work;
use crate::machine::{Batch, ConnectionKey, Input, SetAside};
use crate::store::StoreError;

impl Edge {
    /// A panic of a sink or a store must not leave the broker performing for ever, nor what it had with nobody.
    pub(super) fn perform_caught(&self, work: Work) {
        let batch = if let Work::Store(batch) = &work { Some(batch.id) } else { None };
        let wanted = if let Work::Load(wanted) = &work { wanted.clone() } else { Vec::new() };
        let connection = if let Work::Deliver(connection, ..) = &work { Some(*connection) } else { None };
        let Err(panic) = caught(|| self.perform_one(work)) else { return };
        tracing::error!(
            broker = self.name,
            panic,
            "a sink or the store of the broker panicked; this is a bug in it"
        );
        if let Some(batch) = batch {
            let outcome = Err(StoreError::Io(format!("it panicked: {panic}")));
            self.post(Posted::Input(Input::Stored { batch, outcome }));
        }
        if !wanted.is_empty() {
            let error = StoreError::Io(format!("the store panicked: {panic}"));
            let messages = wanted.into_iter().map(|stored| (stored, Err(error.clone()))).collect();
            self.post(Posted::Input(Input::Loaded { messages }));
        }
        if let Some(connection) = connection {
            self.break_off(connection);
        }
    }

    /// Ends a connection whose sink does not take what it is given, as if its machine had died.
    fn break_off(&self, connection: ConnectionKey) {
        let mut state = self.lock();
        let Some(link) = state.links.remove(&connection) else { return };
        let confirmers = state.confirmers.take_of(connection);
        state.queued.push_back(Work::Drop(confirmers));
        state.queued.push_back(Work::Notify(link.sink, Event::Lost { error: ProviderError::Lost }));
        drop(state);
        self.post(Posted::Input(Input::Vanished { connection }));
    }

    fn perform_one(&self, work: Work) {
        match work {
            Work::Store(Batch { id, operations, is_awaited }) => {
                let me = self.me.clone();
                let completion = move |outcome, sweep| {
                    if let Some(edge) = me.upgrade() {
                        edge.completed(Input::Stored { batch: id, outcome }, sweep);
                    }
                };
                if is_awaited {
                    self.store.submit(operations, Box::new(completion));
                } else {
                    self.store.submit_unawaited(operations, Box::new(completion));
                }
            }
            Work::TakeSends => self.store.take_sends(),
            Work::Load(wanted) => {
                let me = self.me.clone();
                let completion = move |messages| {
                    if let Some(edge) = me.upgrade() {
                        edge.post(Posted::Input(Input::Loaded { messages }));
                    }
                };
                self.store.load(wanted, Box::new(completion));
            }
            Work::SetAside(SetAside { queue, stored, error }) => tracing::error!(
                broker = self.name,
                %queue,
                stored = stored.0,
                %error,
                "a message cannot be read back; it is set aside until the next start, and its queue goes on"
            ),
            Work::Deliver(_, sink, batch) => sink.deliver(batch),
            Work::Notify(sink, event) => sink.notify(event),
            Work::Fail(error) => drop(self.failure.send_replace(Some(error))),
            Work::Confirm(confirmer, outcome) => confirmer.confirm(outcome),
            // Whoever dropped the future does not want to know.
            Work::Tell(told, outcome) => drop(told.send(outcome)),
            Work::Warn(error @ ProviderError::StoreFull { .. }) => tracing::warn!(
                broker = self.name,
                %error,
                "a send was refused because the store is full; further ones are not logged"
            ),
            Work::Warn(error) => tracing::warn!(
                broker = self.name,
                %error,
                "a send was refused because memory is full; further ones are not logged"
            ),
            Work::Release(sink) => drop(sink),
            Work::Drop(confirmers) => drop(confirmers),
        }
    }
}

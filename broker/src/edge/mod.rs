//! What stands around the machine: the lock, the order of its effects, the store, the sinks and the clock.
//!
//! One mutex guards the machine and the effects that are not performed yet. Whoever brings an input steps the machine
//! and queues its effects under the lock, and then, with the lock released, performs what is queued, unless another
//! call is performing already. So effects are performed in the order of the steps, one at a time, and a sink or a store
//! that calls back, which brings an input while effects are being performed, only queues what comes of it.
//!
//! A call performs no more than a bounded number of effects, so that nobody is kept by what others bring meanwhile. What
//! it leaves is for the next call or for the timekeeper, whichever is first.

mod confirmers;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use corriere_core::panic::caught;
use corriere_core::provider::{Command, ConnectOptions, DeliverySink, Event, ProviderError, Receipt};
use corriere_core::{Clock, Timestamp};
use tokio::sync::Notify;

use crate::machine::{ConnectionKey, Input, Machine, Ticket};
use crate::registry;
use crate::settings::Settings;
use crate::store::{MessageStore, StoreError};
use state::{Link, Own, State, Work};

/// How many effects one call performs before it leaves the rest to others.
const TURN: u64 = 64;

/// A machine at work.
#[derive(Debug)]
pub(crate) struct Edge {
    name: String,
    clock: Clock,
    store: Arc<dyn MessageStore>,
    state: Mutex<State>,
    /// Rung when the timekeeper has to look again.
    bell: Arc<Notify>,
    /// This broker, for completions, which must not keep it alive.
    me: Weak<Edge>,
}

/// What the timekeeper does next.
#[derive(Debug)]
enum Task {
    /// Lets others run, and then performs more of what is queued.
    Perform,
    /// Waits for the bell, or for the moment at which the machine is to be woken.
    Wait(Option<Timestamp>),
}

impl Edge {
    pub(crate) fn new(
        name: &str,
        settings: Settings,
        store: Arc<dyn MessageStore>,
        clock: Clock,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            name: name.to_owned(),
            clock,
            store,
            state: Mutex::new(State::new(settings)),
            bell: Arc::new(Notify::new()),
            me: me.clone(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock.clone()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn query<T>(&self, ask: impl FnOnce(&Machine) -> T) -> T {
        ask(&self.lock().machine)
    }

    /// Makes a connection.
    pub(crate) fn connect(
        &self,
        options: ConnectOptions,
        sink: Arc<dyn DeliverySink>,
    ) -> Result<ConnectionKey, ProviderError> {
        let mut state = self.lock();
        if let Some(error) = &state.stopped {
            return Err(error.clone());
        }
        if let Some(client_id) = &options.client_id
            && let Some(holder) = state.links.values().find(|link| link.client_id.as_ref() == Some(client_id))
        {
            return Err(ProviderError::ClientIdInUse {
                client_id: client_id.to_string(),
                holder: holder.identity.to_string(),
            });
        }
        state.last_connection += 1;
        let connection = ConnectionKey(state.last_connection);
        let identity = options.connection.clone();
        state
            .links
            .insert(connection, Link { sink, client_id: options.client_id, identity: options.connection });
        self.step(&mut state, Input::Connect { connection, identity });
        drop(self.perform(state));
        Ok(connection)
    }

    /// Takes a command of a connection.
    pub(crate) fn submit(&self, connection: ConnectionKey, command: Command) -> Receipt {
        let is_close = matches!(command, Command::Close);
        let mut state = self.lock();
        if let Some(error) = &state.stopped {
            return Receipt::ready(Err(error.clone()));
        }
        state.last_ticket += 1;
        let ticket = Ticket(state.last_ticket);
        // The call that performs can hand out a fulfilled receipt. For any other, what stands before its confirmation
        // in the queue has yet to be delivered.
        let pending = if state.is_performing {
            Some(state.hand_out(connection, ticket))
        } else {
            state.own = Some(Own { ticket, outcome: None });
            None
        };
        self.step(&mut state, Input::Command { connection, ticket, command });
        if is_close {
            state.unlink(connection);
        }
        if let Some(receipt) = pending {
            return receipt;
        }
        let mut state = self.perform(state);
        match state.own.take().and_then(|own| own.outcome) {
            Some((outcome, after)) if after <= state.performed => Receipt::ready(outcome),
            Some((outcome, _)) => {
                let (confirmer, receipt) = Receipt::pending();
                state.queued.push_back(Work::Confirm(confirmer, outcome));
                receipt
            }
            None => match &state.stopped {
                Some(error) => Receipt::ready(Err(error.clone())),
                // Its sink panicked meanwhile, so that nobody will answer it any more.
                None if !is_close && !state.links.contains_key(&connection) => {
                    Receipt::ready(Err(ProviderError::Lost))
                }
                None => state.hand_out(connection, ticket),
            },
        }
    }

    /// Ends a connection of which the last handle is gone.
    pub(crate) fn disconnect(&self, connection: ConnectionKey) {
        let mut state = self.lock();
        state.unlink(connection);
        let confirmers = state.confirmers.take_of(connection);
        state.queued.push_back(Work::Drop(confirmers));
        self.input(state, Input::Vanished { connection });
    }

    /// Ends everything.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.stop(self.stopped("it was told to".to_owned()));
        registry::leave(self);
        drop(self.perform(state));
        self.bell.notify_one();
    }

    /// Ends everything because the machine panicked, which leaves it in no state to go on.
    fn fail(&self, state: &mut State, panic: &str) {
        tracing::error!(
            broker = self.name,
            panic,
            "the broker failed within itself and stops; this is a bug in it"
        );
        state.stop(self.stopped(format!("it failed within itself, which is a bug in it: {panic}")));
        registry::leave(self);
        self.bell.notify_one();
    }

    fn stopped(&self, reason: String) -> ProviderError {
        ProviderError::Stopped { broker: self.name.clone(), reason }
    }

    fn input(&self, mut state: MutexGuard<'_, State>, input: Input) {
        self.step(&mut state, input);
        drop(self.perform(state));
    }

    /// Steps the machine and queues what comes of it.
    fn step(&self, state: &mut State, input: Input) {
        if state.stopped.is_some() {
            return;
        }
        let now = self.clock.now();
        match caught(|| state.machine.step(now, input)) {
            Ok(effects) => state.queue(effects),
            Err(panic) => self.fail(state, &panic),
        }
        if state.wake_at.is_some_and(|wake_at| state.armed_for.is_none_or(|armed_for| wake_at < armed_for)) {
            // Not to ring twice for the same moment; the timekeeper notes what it sleeps for.
            state.armed_for = state.wake_at;
            self.bell.notify_one();
        }
    }

    /// Performs what is queued, up to a bound, unless somebody does already.
    fn perform<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if state.is_performing {
            return state;
        }
        state.is_performing = true;
        let end = state.performed + TURN;
        while state.performed < end
            && let Some(work) = state.queued.pop_front()
        {
            state.performed += 1;
            drop(state);
            self.perform_caught(work);
            state = self.lock();
        }
        state.is_performing = false;
        if !state.queued.is_empty() {
            self.bell.notify_one();
        }
        state
    }

    /// A panic of a sink or a store must not leave the broker performing for ever, nor what it had with nobody.
    fn perform_caught(&self, work: Work) {
        let batch = if let Work::Store(batch, _) = &work { Some(*batch) } else { None };
        let connection = if let Work::Deliver(connection, ..) = &work { Some(*connection) } else { None };
        let Err(panic) = caught(|| self.perform_one(work)) else { return };
        tracing::error!(
            broker = self.name,
            panic,
            "a sink or the store of the broker panicked; this is a bug in it"
        );
        if let Some(batch) = batch {
            let outcome = Err(StoreError::Io(format!("it panicked: {panic}")));
            self.input(self.lock(), Input::Stored { batch, outcome });
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
        self.input(state, Input::Vanished { connection });
    }

    fn perform_one(&self, work: Work) {
        match work {
            Work::Store(batch, operations) => {
                let me = self.me.clone();
                let completion = move |outcome| {
                    if let Some(edge) = me.upgrade() {
                        edge.input(edge.lock(), Input::Stored { batch, outcome });
                    }
                };
                self.store.submit(operations, Box::new(completion));
            }
            Work::Deliver(_, sink, batch) => sink.deliver(batch),
            Work::Notify(sink, event) => sink.notify(event),
            Work::Confirm(confirmer, outcome) => confirmer.confirm(outcome),
            Work::Warn(error) => tracing::warn!(
                broker = self.name,
                %error,
                "a send was refused because memory is full; further ones are not logged"
            ),
            Work::Release(sink) => drop(sink),
            Work::Drop(confirmers) => drop(confirmers),
        }
    }

    /// Wakes the machine when something is due, and performs what others left, until the broker is gone.
    pub(crate) async fn keep_time(me: Weak<Self>) {
        let Some((bell, clock)) = me.upgrade().map(|edge| (Arc::clone(&edge.bell), edge.clock.clone()))
        else {
            return;
        };
        while let Some(task) = me.upgrade().and_then(|edge| edge.next_task()) {
            match task {
                Task::Perform => tokio::task::yield_now().await,
                Task::Wait(None) => bell.notified().await,
                Task::Wait(Some(wake_at)) => tokio::select! {
                    () = bell.notified() => {}
                    () = clock.sleep_until(wake_at) => {
                        if let Some(edge) = me.upgrade() {
                            edge.input(edge.lock(), Input::Tick);
                        }
                    }
                },
            }
        }
    }

    /// Performs what was left, and says what the timekeeper has to do next; `None` when there is nothing more to do.
    fn next_task(&self) -> Option<Task> {
        let mut state = self.perform(self.lock());
        if !state.queued.is_empty() && !state.is_performing {
            return Some(Task::Perform);
        }
        if state.stopped.is_some() && state.queued.is_empty() {
            return None;
        }
        state.armed_for = state.wake_at;
        Some(Task::Wait(state.wake_at.filter(|_| state.stopped.is_none())))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing unwinds while this is locked but the machine, which is caught and ends the broker.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        registry::leave(self);
        self.bell.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use corriere_core::ConnectionId;

    use corriere_core::provider::Dispatch;

    use super::*;
    use crate::store::MemoryStore;

    #[derive(Debug)]
    struct Deaf;

    impl DeliverySink for Deaf {
        fn deliver(&self, _: Vec<Dispatch>) {}
        fn notify(&self, _: Event) {}
    }

    #[test]
    fn a_broker_that_failed_within_itself_says_so_to_whoever_comes() {
        let edge = Edge::new("failed", Settings::default(), Arc::new(MemoryStore), Clock::system());
        let options = || ConnectOptions {
            connection: ConnectionId::unique(),
            client_id: None,
            user: None,
            password: None,
        };
        let connection = edge.connect(options(), Arc::new(Deaf)).unwrap();
        edge.fail(&mut edge.lock(), "no entry found");
        let error = edge.connect(options(), Arc::new(Deaf)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "broker `failed` has stopped: it failed within itself, which is a bug in it: no entry found"
        );
        drop(edge.submit(connection, Command::Close));
    }
}

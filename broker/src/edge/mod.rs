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

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use corriere_core::panic::caught;
use corriere_core::provider::{Command, ConnectOptions, DeliverySink, Event, ProviderError, Receipt};
use corriere_core::{Clock, Timestamp};
use tokio::sync::{Notify, watch};

use crate::machine::{ConnectionKey, Input, Machine, SetAside, Ticket};
use crate::registry;
use crate::settings::Settings;
use crate::store::{Loaded, MessageStore, StoreError, StoreEvent, StoredId, Sweep};
use state::{Link, Own, State, StoreIs, Work};

/// How many batches whose end is told one after the other are taken in one step.
const SWEPT: usize = 256;

/// How many effects are taken from the queue at once.
const AT_ONCE: usize = 16;

/// How many effects one call performs before it leaves the rest to others.
const TURN: u64 = 64;

/// A machine at work.
#[derive(Debug)]
pub(crate) struct Edge {
    name: String,
    clock: Clock,
    store: Arc<dyn MessageStore>,
    state: Mutex<State>,
    /// Batches whose end was told and not taken, as more are told.
    completed: Mutex<Vec<Input>>,
    /// Rung when the timekeeper has to look again.
    bell: Arc<Notify>,
    /// Told when somebody has performed for a while, or the store is closed.
    performed: Condvar,
    /// Why it failed, once it has.
    failure: watch::Sender<Option<ProviderError>>,
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
        let machine = Machine::recovered(settings, store.recover(), store.can_load(), clock.now());
        let edge = Arc::new_cyclic(|me| Self {
            name: name.to_owned(),
            clock,
            store,
            completed: Mutex::new(Vec::new()),
            state: Mutex::new(State::new(machine)),
            bell: Arc::new(Notify::new()),
            performed: Condvar::new(),
            failure: watch::Sender::new(None),
            me: me.clone(),
        });
        let me = Arc::downgrade(&edge);
        edge.store.watch(Box::new(move |event| {
            if let Some(edge) = me.upgrade() {
                edge.store_says(event);
            }
        }));
        // What expired while nobody was there does so now.
        edge.input(edge.lock(), Input::Tick);
        edge
    }

    fn store_says(&self, event: StoreEvent) {
        let mut state = self.lock();
        match event {
            StoreEvent::Full { reason } => self.input(state, Input::StoreFull { reason }),
            StoreEvent::Room => self.input(state, Input::StoreRoom),
            StoreEvent::Failed(error) => {
                tracing::error!(broker = self.name, %error, "the message store failed, and the broker stops");
                self.fail(&mut state, format!("its message store failed: {error}"));
                self.lead(self.perform(state));
            }
        }
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
        self.step(&mut state, [Input::Connect { connection, identity }]);
        self.lead(self.perform(state));
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
        let pending = if state.performer.is_some() {
            Some(state.hand_out(connection, ticket))
        } else {
            state.own = Some(Own { ticket, outcome: None });
            None
        };
        self.step(&mut state, [Input::Command { connection, ticket, command }]);
        if is_close {
            state.unlink(connection);
        }
        if let Some(receipt) = pending {
            return receipt;
        }
        let mut state = self.perform(state);
        let receipt = match state.own.take().and_then(|own| own.outcome) {
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
        };
        self.lead(state);
        receipt
    }

    /// Takes a command of which nobody waits for the confirmation.
    pub(crate) fn tell(&self, connection: ConnectionKey, command: Command) {
        let mut state = self.lock();
        if state.stopped.is_some() {
            return;
        }
        state.last_ticket += 1;
        let ticket = Ticket(state.last_ticket);
        state.is_awaited = false;
        self.step(&mut state, [Input::Command { connection, ticket, command }]);
        state.is_awaited = true;
        self.lead(self.perform(state));
    }

    /// Ends a connection of which the last handle is gone.
    pub(crate) fn disconnect(&self, connection: ConnectionKey) {
        let mut state = self.lock();
        state.unlink(connection);
        let confirmers = state.confirmers.take_of(connection);
        state.queued.push_back(Work::Drop(confirmers));
        self.input(state, Input::Vanished { connection });
    }

    /// Ends everything, and closes the store when all that it was to be given has been. Called from within an effect it
    /// returns at once, and a thread of its own does the rest.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        self.count_what_is_in_hand(&mut state);
        state.stop(self.stopped("it was told to".to_owned()), false);
        registry::leave(self);
        self.bell.notify_one();
        let this_thread = thread::current().id();
        loop {
            state = self.perform(state);
            if state.performer == Some(this_thread) {
                if let Some(edge) = self.me.upgrade() {
                    thread::spawn(move || edge.stop());
                }
                return;
            }
            match state.store_is {
                StoreIs::Closed => return,
                StoreIs::Open if state.performer.is_none() && state.queued.is_empty() => break,
                StoreIs::Open if state.performer.is_none() => {}
                StoreIs::Open | StoreIs::Closing => {
                    state = self.performed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
        state.store_is = StoreIs::Closing;
        drop(state);
        self.store.close();
        self.lock().store_is = StoreIs::Closed;
        self.performed.notify_all();
    }

    /// Ends the connections for the machine, so that what the application has in its hands is counted and stored as
    /// delivered. Nothing is sent to them any more.
    fn count_what_is_in_hand(&self, state: &mut State) {
        let links = std::mem::take(&mut state.links);
        for connection in links.keys() {
            self.step(state, [Input::Vanished { connection: *connection }]);
        }
        state.links = links;
    }

    /// Ends everything for a reason that nobody asked for.
    fn fail(&self, state: &mut State, reason: String) {
        if state.stopped.is_some() {
            return;
        }
        let error = self.stopped(reason);
        state.stop(error.clone(), true);
        self.failure.send_replace(Some(error));
        registry::leave(self);
        self.bell.notify_one();
    }

    /// Told why it failed, once it has; dropped with it.
    pub(crate) fn failure(&self) -> watch::Receiver<Option<ProviderError>> {
        self.failure.subscribe()
    }

    /// Has messages read back for somebody else than the machine.
    pub(crate) fn load(&self, wanted: Vec<StoredId>, completion: Loaded) {
        self.store.load(wanted, completion);
    }

    fn stopped(&self, reason: String) -> ProviderError {
        ProviderError::Stopped { broker: self.name.clone(), reason }
    }

    fn input(&self, mut state: MutexGuard<'_, State>, input: Input) {
        self.step(&mut state, [input]);
        self.lead(self.perform(state));
    }

    /// Takes the end of a batch, together with others whose end is told at once.
    fn completed(&self, input: Input, sweep: Sweep) {
        let count = {
            let mut completed = self.completed.lock().unwrap_or_else(PoisonError::into_inner);
            completed.push(input);
            completed.len()
        };
        if sweep == Sweep::GoesOn && count < SWEPT {
            return;
        }
        let mut state = self.lock();
        // Taken under the state's lock, so that they are taken in the order in which they came.
        let inputs = std::mem::take(&mut *self.completed.lock().unwrap_or_else(PoisonError::into_inner));
        if !inputs.is_empty() {
            self.step(&mut state, inputs);
            self.lead(self.perform(state));
        }
    }

    /// Lets the store write what it was given, on this thread if it likes, unless this is a call from within another one
    /// that performs, which will do it.
    fn lead(&self, mut state: MutexGuard<'_, State>) {
        if state.performer.is_none() && std::mem::take(&mut state.has_submitted) {
            drop(state);
            self.store.lead();
        }
    }

    /// Steps the machine and queues what comes of it.
    fn step(&self, state: &mut State, inputs: impl IntoIterator<Item = Input>) {
        if state.stopped.is_some() {
            return;
        }
        let now = self.clock.now();
        match caught(|| state.machine.step_all(now, inputs)) {
            Ok(mut effects) => {
                // Now, and not in its turn: whoever performs may be busy for long, and who told of a hand-over goes on to
                // run what may kill the process.
                for (slot, attempt) in std::mem::take(&mut effects.attempts) {
                    self.store.note_attempt(slot, attempt);
                }
                state.queue(effects);
            }
            Err(panic) => {
                tracing::error!(
                    broker = self.name,
                    panic,
                    "the broker failed within itself and stops; this is a bug in it"
                );
                self.fail(state, format!("it failed within itself, which is a bug in it: {panic}"));
            }
        }
        if state.wake_at.is_some_and(|wake_at| state.armed_for.is_none_or(|armed_for| wake_at < armed_for)) {
            // Not to ring twice for the same moment; the timekeeper notes what it sleeps for.
            state.armed_for = state.wake_at;
            self.bell.notify_one();
        }
    }

    /// Performs what is queued, up to a bound, unless somebody does already.
    fn perform<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if state.performer.is_some() {
            return state;
        }
        state.performer = Some(thread::current().id());
        let end = state.performed + TURN;
        let mut taken = Vec::new();
        while state.performed < end && !state.queued.is_empty() {
            // Some at a time, as others want the lock too.
            let count = state.queued.len().min(AT_ONCE);
            taken.extend(state.queued.drain(..count));
            state.performed += count as u64;
            state.has_submitted |= taken.iter().any(|work| matches!(work, Work::Store { .. }));
            drop(state);
            taken.drain(..).for_each(|work| self.perform_caught(work));
            state = self.lock();
        }
        state.performer = None;
        if !state.queued.is_empty() {
            self.bell.notify_one();
        }
        if state.stopped.is_some() {
            self.performed.notify_all();
        }
        state
    }

    /// A panic of a sink or a store must not leave the broker performing for ever, nor what it had with nobody.
    fn perform_caught(&self, work: Work) {
        let batch = if let Work::Store { batch, .. } = &work { Some(*batch) } else { None };
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
            self.input(self.lock(), Input::Stored { batch, outcome });
        }
        if !wanted.is_empty() {
            let error = StoreError::Io(format!("the store panicked: {panic}"));
            let messages = wanted.into_iter().map(|stored| (stored, Err(error.clone()))).collect();
            self.input(self.lock(), Input::Loaded { messages });
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
            Work::Store { batch, operations, is_awaited } => {
                let me = self.me.clone();
                let completion = move |outcome, sweep| {
                    if let Some(edge) = me.upgrade() {
                        edge.completed(Input::Stored { batch, outcome }, sweep);
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
                        edge.input(edge.lock(), Input::Loaded { messages });
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
            Work::Confirm(confirmer, outcome) => confirmer.confirm(outcome),
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
        self.lead(self.perform(self.lock()));
        let mut state = self.lock();
        if !state.queued.is_empty() && state.performer.is_none() {
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
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.store_is == StoreIs::Open {
            // This may be a thread of the store, which must not wait for itself.
            let store = Arc::clone(&self.store);
            thread::spawn(move || store.close());
        }
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
        let reason = "it failed within itself, which is a bug in it: no entry found";
        edge.fail(&mut edge.lock(), reason.to_owned());
        let error = edge.connect(options(), Arc::new(Deaf)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "broker `failed` has stopped: it failed within itself, which is a bug in it: no entry found"
        );
        drop(edge.submit(connection, Command::Close));
    }
}

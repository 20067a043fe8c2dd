//! What stands around the machine: the inbox, the order of its effects, the store, the sinks and the clock.
//!
//! Whoever brings an input posts it to the inbox, which keeps nobody waiting. One thread at a time drives: it takes what is
//! posted, steps the machine with it, and performs the effects, without a lock, until nothing is left. Whoever posts
//! while nobody drives does so himself; what is posted while somebody drives is that one's to take. So effects are
//! performed in the order of the steps, one at a time, and a sink or a store that calls back only posts.
//!
//! A driver performs no more than a bounded number of effects, so that nobody is kept by what others bring meanwhile. What
//! it leaves is for the next one who posts or for the timekeeper, whichever is first.

mod confirmers;
mod inbox;
mod state;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use corriere_core::panic::caught;
use corriere_core::provider::{Command, ConnectOptions, DeliverySink, Event, ProviderError, Receipt};
use corriere_core::{Clock, Timestamp};
use tokio::sync::{Notify, watch};

use crate::machine::{Batch, ConnectionKey, Input, Machine, SetAside, attempt_of};
use crate::registry;
use crate::settings::Settings;
use crate::store::{Loaded, MessageStore, StoreError, StoreEvent, StoredId, Sweep};
use inbox::{Inbox, Posted};
use state::{Link, State, StoreIs, Work};

/// How many effects are taken from the queue at once.
const AT_ONCE: usize = 64;

/// How many effects one driver performs before it leaves the rest to others.
const TURN: usize = 256;

/// A machine at work.
#[derive(Debug)]
pub(crate) struct Edge {
    name: String,
    clock: Clock,
    store: Arc<dyn MessageStore>,
    inbox: Inbox,
    /// Locked before the inbox, so that what is taken from it is stepped in its order.
    state: Mutex<State>,
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
            inbox: Inbox::default(),
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
        edge.post(Posted::Input(Input::Tick));
        edge
    }

    fn store_says(&self, event: StoreEvent) {
        match event {
            StoreEvent::Full { reason } => self.post(Posted::Input(Input::StoreFull { reason })),
            StoreEvent::Room => self.post(Posted::Input(Input::StoreRoom)),
            StoreEvent::Failed(error) => {
                tracing::error!(broker = self.name, %error, "the message store failed, and the broker stops");
                self.fail(&mut self.lock(), format!("its message store failed: {error}"));
                self.drive_if_free();
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

    /// What the machine says, after all that was posted before.
    pub(crate) fn query<T>(&self, ask: impl FnOnce(&Machine) -> T) -> T {
        let mut state = self.lock();
        self.take_posted(&mut state);
        let answer = ask(&state.machine);
        drop(state);
        self.drive_if_free();
        answer
    }

    /// Makes a connection.
    pub(crate) fn connect(
        &self,
        options: ConnectOptions,
        sink: Arc<dyn DeliverySink>,
    ) -> Result<ConnectionKey, ProviderError> {
        let mut state = self.lock();
        // One that ended before has left its client id.
        self.take_posted(&mut state);
        if let Some(error) = &state.stopped {
            return Err(error.clone());
        }
        if let Some(client_id) = &options.client_id
            && let Some(holder) = state.links.values().find(|link| link.client_id.as_ref() == Some(client_id))
        {
            let in_use = ProviderError::ClientIdInUse {
                client_id: client_id.to_string(),
                holder: holder.identity.to_string(),
            };
            drop(state);
            self.drive_if_free();
            return Err(in_use);
        }
        state.last_connection += 1;
        let connection = ConnectionKey(state.last_connection);
        let identity = options.connection.clone();
        state
            .links
            .insert(connection, Link { sink, client_id: options.client_id, identity: options.connection });
        self.step(&mut state, [Input::Connect { connection, identity }]);
        drop(state);
        self.drive_if_free();
        Ok(connection)
    }

    /// Takes a command of a connection.
    pub(crate) fn submit(&self, connection: ConnectionKey, command: Command) -> Receipt {
        if is_answered_at_once(&command) {
            return self.submit_and_step(connection, command);
        }
        let (confirmer, receipt) = Receipt::pending();
        self.note_hand_over(&command);
        self.post(Posted::Command { connection, command, confirmer: Some(confirmer) });
        receipt
    }

    /// Steps the machine with a command on this thread, though another may drive: whoever sends many one after the other
    /// is not to wait each time until that one has told him.
    fn submit_and_step(&self, connection: ConnectionKey, command: Command) -> Receipt {
        let mut state = self.lock();
        self.take_posted(&mut state);
        let receipt = match state.own(connection, command) {
            Ok((ticket, input)) => {
                self.step(&mut state, [input]);
                state.own_receipt(connection, ticket)
            }
            Err(error) => Receipt::ready(Err(error)),
        };
        drop(state);
        self.drive_if_free();
        receipt
    }

    /// Takes a command of which nobody waits for the confirmation.
    pub(crate) fn tell(&self, connection: ConnectionKey, command: Command) {
        self.note_hand_over(&command);
        self.post(Posted::Command { connection, command, confirmer: None });
    }

    /// At once, and not in its turn: who tells of a hand-over goes on to run what may kill the process.
    fn note_hand_over(&self, command: &Command) {
        if let Command::HandedOver { mark: Some(mark), .. } = command {
            let (slot, attempt) = attempt_of(*mark);
            self.store.note_attempt(slot, Some(attempt));
        }
    }

    /// Ends a connection of which the last handle is gone.
    pub(crate) fn disconnect(&self, connection: ConnectionKey) {
        self.post(Posted::Vanished(connection));
    }

    /// Ends everything, and closes the store when all that it was to be given has been. Called from within an effect it
    /// returns at once, and a thread of its own does the rest.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        self.take_posted(&mut state);
        self.count_what_is_in_hand(&mut state);
        state.stop(self.stopped("it was told to".to_owned()), false);
        registry::leave(self);
        self.bell.notify_one();
        let this_thread = thread::current().id();
        loop {
            drop(state);
            self.drive_if_free();
            state = self.lock();
            let driver = self.inbox.driver();
            if driver == Some(this_thread) {
                if let Some(edge) = self.me.upgrade() {
                    thread::spawn(move || edge.stop());
                }
                return;
            }
            match state.store_is {
                StoreIs::Closed => return,
                StoreIs::Open if driver.is_none() && state.queued.is_empty() => break,
                StoreIs::Open if driver.is_none() => {}
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

    fn post(&self, posted: Posted) {
        if self.inbox.post(posted) {
            self.drive();
        }
    }

    /// Takes the end of a batch, together with others whose end is told at once.
    fn completed(&self, input: Input, sweep: Sweep) {
        match sweep {
            Sweep::GoesOn => self.inbox.post_ahead(Posted::Input(input)),
            Sweep::Ends => self.post(Posted::Input(input)),
        }
    }

    /// Performs what is queued, unless somebody else drives, who will come to it.
    fn drive_if_free(&self) {
        if self.inbox.begin() {
            self.drive();
        }
    }

    /// Takes what is posted and performs what comes of it, until nothing is left or the turn is over. Called by the driver.
    fn drive(&self) {
        let mut taken = Vec::new();
        let (mut performed, mut has_submitted) = (0, false);
        loop {
            let mut state = self.lock();
            let is_over = if performed >= TURN {
                self.inbox.end();
                self.bell.notify_one();
                true
            } else {
                self.take_posted(&mut state);
                let count = state.queued.len().min(AT_ONCE);
                taken.extend(state.queued.drain(..count));
                taken.is_empty() && self.inbox.end_if_empty()
            };
            if is_over {
                if state.stopped.is_some() {
                    self.performed.notify_all();
                }
                break;
            }
            drop(state);
            performed += taken.len();
            has_submitted |= taken.iter().any(|work| matches!(work, Work::Store(_)));
            taken.drain(..).for_each(|work| self.perform_caught(work));
        }
        if has_submitted {
            // What was submitted may be written on this thread, and it drives no more.
            self.store.lead();
        }
    }

    /// Steps the machine with all that is posted.
    fn take_posted(&self, state: &mut State) {
        let mut posted = self.inbox.take(std::mem::take(&mut state.taken));
        let inputs: Vec<_> = posted.drain(..).filter_map(|posted| state.input(posted)).collect();
        state.taken = posted;
        if !inputs.is_empty() {
            self.step(state, inputs);
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
                // Now, and not in its turn: who told of a hand-over goes on to run what may kill the process.
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

    /// A panic of a sink or a store must not leave the broker performing for ever, nor what it had with nobody.
    fn perform_caught(&self, work: Work) {
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
                            edge.post(Posted::Input(Input::Tick));
                        }
                    }
                },
            }
        }
    }

    /// Performs what was left, and says what the timekeeper has to do next; `None` when there is nothing more to do.
    fn next_task(&self) -> Option<Task> {
        self.drive_if_free();
        let mut state = self.lock();
        if self.inbox.driver().is_none() && (self.inbox.has_posted() || !state.queued.is_empty()) {
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

/// Whether the outcome depends neither on the store nor on what has been delivered: a message that need only be accepted.
fn is_answered_at_once(command: &Command) -> bool {
    matches!(command, Command::Send(send) if send.transaction.is_some() || !send.message.headers().is_persistent())
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

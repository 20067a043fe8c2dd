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
mod driving;
mod inbox;
mod performing;
mod slots;
mod state;
mod timekeeper;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::{hint, thread};

use corriere_core::provider::{Command, ConnectOptions, DeliverySink, ProviderError, Receipt};
use corriere_core::{Clock, Destination, Timestamp};
use tokio::sync::{Notify, oneshot, watch};

use crate::machine::{ConnectionKey, Input, Machine, Order};
use crate::operation_counts::OperationCounts;
use crate::registry;
use crate::settings::Settings;
use crate::store::{Loaded, MessageStore, StoreEvent, StoredId};
use driving::is_leading;
use inbox::{Inbox, Posted};
use slots::Slots;
use state::{State, StoreIs, Work};

/// How often the state is looked at before one sleeps until it is free, and how long it is not looked at in between: about
/// 20 µs in all.
const TRIES: usize = 32;
const PAUSES: usize = 16;

/// A machine at work.
#[derive(Debug)]
pub(crate) struct Edge {
    name: String,
    clock: Clock,
    store: Arc<dyn MessageStore>,
    inbox: Inbox,
    /// Whether the store was given something since it was led last.
    has_submitted: AtomicBool,
    /// How many threads have the store led, or are about to.
    leaders: AtomicUsize,
    slots: Slots,
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
            has_submitted: AtomicBool::new(false),
            leaders: AtomicUsize::new(0),
            slots: Slots::default(),
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
            StoreEvent::Failed(error) => self.store_failed(&error.to_string()),
        }
    }

    fn store_failed(&self, reason: &str) {
        let is_first = {
            let mut state = self.lock();
            let is_first = state.stopped.is_none();
            self.fail(&mut state, format!("its message store failed: {reason}"));
            is_first
        };
        if is_first {
            tracing::error!(broker = self.name, reason, "the message store failed, and the broker stops");
        }
        self.drive_if_free();
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

    /// What the machine says, after all that was posted before. What comes of that is left to others to perform.
    pub(crate) fn query<T>(&self, ask: impl FnOnce(&Machine) -> T) -> T {
        let mut state = self.lock();
        self.take_all_posted(&mut state);
        if !state.queued.is_empty() {
            self.bell.notify_one();
        }
        ask(&state.machine)
    }

    /// Makes a connection.
    pub(crate) fn connect(
        &self,
        options: ConnectOptions,
        sink: Arc<dyn DeliverySink>,
    ) -> Result<ConnectionKey, ProviderError> {
        let connection = {
            let mut state = self.lock();
            // One that ended before has left its client id.
            self.take_all_posted(&mut state);
            let linked = state.link(options, sink);
            linked.map(|(connection, input)| {
                self.step(&mut state, [input]);
                connection
            })
        };
        self.drive_if_free();
        connection
    }

    /// Takes a command of a connection.
    pub(crate) fn submit(&self, connection: ConnectionKey, command: Command) -> Receipt {
        if is_answered_at_once(&command) {
            return self.submit_and_step(connection, command);
        }
        let (confirmer, receipt) = Receipt::pending();
        self.note_hand_over(connection, &command);
        self.post(Posted::Command { connection, command, confirmer: Some(confirmer) });
        receipt
    }

    /// Steps the machine with a command on this thread, though another may drive: whoever sends many one after the other
    /// is not to wait each time until that one has told him.
    fn submit_and_step(&self, connection: ConnectionKey, command: Command) -> Receipt {
        let mut state = self.lock();
        self.take_all_posted(&mut state);
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
        self.note_hand_over(connection, &command);
        self.post(Posted::Command { connection, command, confirmer: None });
    }

    /// Ends a connection of which the last handle is gone.
    pub(crate) fn disconnect(&self, connection: ConnectionKey) {
        self.post(Posted::Vanished(connection));
    }

    /// Does something with messages of a queue, as an operator wishes.
    pub(crate) async fn manage(&self, order: Order) -> Result<OperationCounts, ProviderError> {
        let (told, outcome) = oneshot::channel();
        self.post(Posted::Manage { order, told });
        outcome.await.unwrap_or(Err(ProviderError::Lost))
    }

    /// Changes the prefetch of a queue's policy.
    pub(crate) fn set_prefetch(&self, queue: Destination, prefetch: u32) {
        self.post(Posted::Input(Input::SetPrefetch { queue, prefetch }));
    }

    /// Ends everything, and closes the store when all that it was to be given has been. Called from within an effect it
    /// returns at once, and a thread of its own does the rest.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        self.take_all_posted(&mut state);
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
            if driver == Some(this_thread) || is_leading() {
                if let Some(edge) = self.me.upgrade() {
                    thread::spawn(move || edge.stop());
                }
                return;
            }
            match state.store_is {
                StoreIs::Closed => return,
                StoreIs::Open if driver.is_none() && self.leaders.load(Ordering::Acquire) == 0 => {
                    if state.queued.is_empty() && self.inbox.len() == 0 {
                        break;
                    }
                }
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
        state.queued.push_back(Work::Fail(error));
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

    fn lock(&self) -> MutexGuard<'_, State> {
        // Whoever has it gives it back after some steps. To sleep and to be woken takes longer than most of that.
        for _ in 0..TRIES {
            match self.state.try_lock() {
                Ok(state) => return state,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => (0..PAUSES).for_each(|_| hint::spin_loop()),
            }
        }
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
mod tests;

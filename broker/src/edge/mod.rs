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

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use corriere_core::panic::caught;
use corriere_core::provider::{Command, ConnectOptions, DeliverySink, Event, ProviderError, Receipt};
use corriere_core::{Clock, Timestamp};
use tokio::sync::{Notify, watch};

use crate::machine::{Batch, ConnectionKey, Input, Machine, SetAside, SlotNote, SubscriptionKey, attempt_of};
use crate::registry;
use crate::settings::Settings;
use crate::store::{Attempt, AttemptSlot, Loaded, MessageStore, StoreError, StoreEvent, StoredId, Sweep};
use inbox::{Inbox, Post, Posted};
use state::{Link, State, StoreIs, Work};

/// How many inputs are stepped, and how many effects are taken from the queue, at once.
const AT_ONCE: usize = 64;

/// How many inputs and effects one driver takes before it leaves the rest to others.
const TURN: usize = 256;

/// How often one call has the store led before it leaves that to the timekeeper.
const LEADS: usize = 4;

thread_local! {
    /// Whether this thread is in a store's [`MessageStore::lead`], on whose stack no other one is to begin.
    static LEADS_NOW: Cell<bool> = const { Cell::new(false) };
}

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
    /// The last hand-over that a client's own call noted in each slot. Locked while a slot is written.
    noted: Mutex<HashMap<AttemptSlot, (SubscriptionKey, u64)>>,
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
            has_submitted: AtomicBool::new(false),
            leaders: AtomicUsize::new(0),
            noted: Mutex::default(),
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
        let mut state = self.lock();
        // One that ended before has left its client id.
        self.take_all_posted(&mut state);
        if let Some(error) = state.stopped.clone() {
            drop(state);
            self.drive_if_free();
            return Err(error);
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

    /// At once, and not in its turn: who tells of a hand-over goes on to run what may kill the process.
    fn note_hand_over(&self, connection: ConnectionKey, command: &Command) {
        if let Command::HandedOver { subscription, number, mark: Some(mark) } = command {
            let (slot, attempt) = attempt_of(*mark);
            let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
            noted.insert(slot, ((connection, *subscription), *number));
            self.note(slot, Some(attempt));
        }
    }

    /// Writes what the machine wants a slot to say, unless its consumer has been handed more meanwhile, by a call that noted it.
    fn note_attempt(&self, note: &SlotNote) {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let is_late = noted
            .get(&note.slot)
            .is_some_and(|(key, number)| *key == note.subscription && *number > note.handed_over);
        if !is_late {
            self.note(note.slot, note.attempt);
        }
    }

    fn note(&self, slot: AttemptSlot, attempt: Option<Attempt>) {
        if let Err(panic) = caught(|| self.store.note_attempt(slot, attempt)) {
            tracing::error!(
                broker = self.name,
                panic,
                "the store of the broker panicked; this is a bug in it"
            );
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
            if driver == Some(this_thread) || LEADS_NOW.get() {
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

    fn post(&self, posted: Posted) {
        match self.inbox.post(posted) {
            Post::Drive => self.drive(),
            Post::Left => {}
            Post::TakeSome => drop(self.take_posted(&mut self.lock(), AT_ONCE)),
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

    /// Takes what is posted and performs what comes of it, until nothing is left or the turn is over, and has the store write
    /// what it was given. Called by the driver.
    fn drive(&self) {
        // Counted before it drives no more, so that the store is not closed in between.
        self.leaders.fetch_add(1, Ordering::AcqRel);
        let mut driving = Driving { edge: self, is_over: false };
        self.take_turn();
        driving.is_over = true;
        self.lead();
        self.leaders.fetch_sub(1, Ordering::AcqRel);
        let state = self.lock();
        if state.stopped.is_some() {
            self.performed.notify_all();
            self.bell.notify_one();
        }
    }

    fn take_turn(&self) {
        let mut taken = Vec::new();
        let mut count = 0;
        loop {
            let mut state = self.lock();
            if count >= TURN {
                self.inbox.end();
                self.bell.notify_one();
                return;
            }
            count += self.take_posted(&mut state, AT_ONCE);
            let effects = state.queued.len().min(AT_ONCE);
            taken.extend(state.queued.drain(..effects));
            if taken.is_empty() && self.inbox.end_if_empty() {
                return;
            }
            drop(state);
            count += taken.len();
            let has_submitted = taken.iter().any(|work| matches!(work, Work::Store(_)));
            taken.drain(..).for_each(|work| self.perform_caught(work));
            if has_submitted {
                self.has_submitted.store(true, Ordering::Release);
            }
        }
    }

    /// Lets the store write what it was given, on this thread if it likes; unless this is within such a call, on whose stack
    /// no other one is to begin: it looks again.
    fn lead(&self) {
        if LEADS_NOW.get() {
            if self.has_submitted.load(Ordering::Acquire) {
                // It may be another broker's.
                self.bell.notify_one();
            }
            return;
        }
        for _ in 0..LEADS {
            if !self.has_submitted.swap(false, Ordering::AcqRel) {
                return;
            }
            LEADS_NOW.set(true);
            let led = caught(|| self.store.lead());
            LEADS_NOW.set(false);
            if let Err(panic) = led {
                tracing::error!(
                    broker = self.name,
                    panic,
                    "the store of the broker panicked; this is a bug in it"
                );
            }
        }
        self.bell.notify_one();
    }

    /// Steps the machine with what is posted, up to `most`, and says how much that was.
    fn take_posted(&self, state: &mut State, most: usize) -> usize {
        let mut posted = std::mem::take(&mut state.taken);
        self.inbox.take(most, &mut posted);
        let count = posted.len();
        let mut inputs = Vec::with_capacity(count);
        for posted in posted.drain(..) {
            if matches!(posted, Posted::Vanished(_)) && !inputs.is_empty() {
                // The outcomes of what came before it are told.
                self.step(state, std::mem::take(&mut inputs));
            }
            inputs.extend(state.input(posted));
        }
        state.taken = posted;
        if !inputs.is_empty() {
            self.step(state, inputs);
        }
        count
    }

    /// Steps the machine with all that is posted by now.
    fn take_all_posted(&self, state: &mut State) {
        let mut left = self.inbox.len();
        while left > 0 {
            let taken = self.take_posted(state, left.min(AT_ONCE));
            left = if taken == 0 { 0 } else { left.saturating_sub(taken) };
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
                for note in std::mem::take(&mut effects.attempts) {
                    self.note_attempt(&note);
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
            Work::Fail(error) => drop(self.failure.send_replace(Some(error))),
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
                            edge.tick();
                        }
                    }
                },
            }
        }
    }

    /// Performs what was left, and says what the timekeeper has to do next; `None` when there is nothing more to do.
    fn next_task(&self) -> Option<Task> {
        self.drive_if_free();
        self.lead();
        let mut state = self.lock();
        let is_driven = self.inbox.driver().is_some();
        let is_left = self.inbox.len() > 0 || !state.queued.is_empty();
        if is_left && !is_driven {
            return Some(Task::Perform);
        }
        if state.stopped.is_some() && !is_left && !is_driven {
            return None;
        }
        state.armed_for = state.wake_at;
        Some(Task::Wait(state.wake_at.filter(|_| state.stopped.is_none())))
    }

    /// Steps the machine when something is due, though another may drive: what it is to be woken for next must be known.
    fn tick(&self) {
        let mut state = self.lock();
        self.take_all_posted(&mut state);
        self.step(&mut state, [Input::Tick]);
        drop(state);
        self.drive_if_free();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing unwinds while this is locked but the machine, which is caught and ends the broker.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The driver at work, whose place is free again if it unwinds.
struct Driving<'a> {
    edge: &'a Edge,
    is_over: bool,
}

impl Drop for Driving<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.edge.leaders.fetch_sub(1, Ordering::AcqRel);
            self.edge.inbox.end();
            self.edge.bell.notify_one();
        }
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
    use std::sync::{OnceLock, mpsc};

    use corriere_core::provider::{Credit, Dispatch, SendMessage, SessionMode, Subscribe};
    use corriere_core::{
        ConnectionId, DeliveryMode, Destination, Message, MessageId, ProducerId, SessionId, SubscriptionId,
    };

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

    /// Is at its first delivery until it is let go.
    #[derive(Debug)]
    struct Busy {
        gate: Mutex<Option<mpsc::Receiver<()>>>,
        entered: AtomicBool,
    }

    impl DeliverySink for Busy {
        fn deliver(&self, _: Vec<Dispatch>) {
            let gate = self.gate.lock().unwrap().take();
            if let Some(gate) = gate {
                self.entered.store(true, Ordering::Release);
                let _ = gate.recv();
            }
        }

        fn notify(&self, _: Event) {}
    }

    fn options() -> ConnectOptions {
        ConnectOptions { connection: ConnectionId::unique(), client_id: None, user: None, password: None }
    }

    /// Sends to a queue; `expires_in` milliseconds.
    fn send(edge: &Edge, queue: &str, expires_in: Option<u64>) -> Command {
        let mut message = Message::text("body");
        let headers = message.headers_mut();
        headers.destination = Some(Destination::queue(queue).unwrap());
        headers.delivery_mode = DeliveryMode::NonPersistent;
        headers.message_id = Some(MessageId { producer: queue.into(), sequence: 1 });
        headers.timestamp = edge.now();
        headers.expiration = expires_in.map(|milliseconds| Timestamp(edge.now().0 + milliseconds));
        let message = Arc::new(message);
        Command::Send(SendMessage { producer: ProducerId(1), message, transaction: None, deadline: None })
    }

    /// A broker of which another thread drives, and does not get on until it is let go.
    fn driven(name: &str) -> (Arc<Edge>, ConnectionKey, mpsc::Sender<()>, thread::JoinHandle<()>) {
        let edge = Edge::new(name, Settings::default(), Arc::new(MemoryStore), Clock::system());
        let (go, gate) = mpsc::channel();
        let sink = Arc::new(Busy { gate: Mutex::new(Some(gate)), entered: AtomicBool::new(false) });
        let connection = edge.connect(options(), Arc::clone(&sink) as Arc<dyn DeliverySink>).unwrap();
        let (session, producer) = (SessionId(1), ProducerId(1));
        let subscribe = Subscribe {
            subscription: SubscriptionId(1),
            session,
            destination: Destination::queue("orders").unwrap(),
            credit: Credit::Window { prefetch: 10, extension: None },
            selector: None,
            no_local: false,
            durable_name: None,
            redelivery: None,
        };
        for command in [
            Command::OpenSession { session, mode: SessionMode::Auto },
            Command::OpenProducer { producer, session, identity: "p".into(), destination: None },
            Command::OpenSubscription(Box::new(subscribe)),
        ] {
            drop(edge.submit(connection, command));
        }
        drop(edge.submit(connection, send(&edge, "other", Some(10))));
        let driving = Arc::clone(&edge);
        let driver = thread::spawn(move || drop(driving.submit(connection, send(&driving, "orders", None))));
        for _ in 0..40_000 {
            if sink.entered.load(Ordering::Acquire) {
                break;
            }
            thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(sink.entered.load(Ordering::Acquire), "it is delivered to");
        (edge, connection, go, driver)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_timekeeper_does_what_is_due_once_though_another_drives() {
        let (edge, _, go, driver) = driven("timed");
        tokio::spawn(Edge::keep_time(Arc::downgrade(&edge)));
        let other = Destination::queue("other").unwrap();
        let is_expired = || edge.lock().machine.counts(&other).is_some_and(|counts| counts.expired == 1);
        for _ in 0..40_000 {
            if is_expired() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        assert!(is_expired());
        assert_eq!(edge.inbox.len(), 0, "nothing piles up");
        go.send(()).unwrap();
        driver.join().unwrap();
    }

    #[test]
    fn who_posts_while_another_drives_takes_some_when_much_is_posted() {
        let (edge, connection, go, driver) = driven("backlog");
        let unknown = SubscriptionId(404);
        for number in 1..=20_000 {
            edge.tell(connection, Command::HandedOver { subscription: unknown, number, mark: None });
        }
        assert!(edge.inbox.len() < 2_000, "{}", edge.inbox.len());
        go.send(()).unwrap();
        driver.join().unwrap();
    }

    /// Submits when it is told that its connection is lost.
    #[derive(Debug, Default)]
    struct Late {
        of: OnceLock<(Weak<Edge>, ConnectionKey)>,
        receipts: Mutex<Vec<Receipt>>,
    }

    impl DeliverySink for Late {
        fn deliver(&self, _: Vec<Dispatch>) {}

        fn notify(&self, _: Event) {
            let (edge, connection) = self.of.get().unwrap();
            let edge = edge.upgrade().unwrap();
            for _ in 0..1_000 {
                let receipt = edge.submit(*connection, Command::Recover);
                self.receipts.lock().unwrap().push(receipt);
            }
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn all_who_come_after_a_failure_are_told() {
        let edge = Edge::new("left", Settings::default(), Arc::new(MemoryStore), Clock::system());
        tokio::spawn(Edge::keep_time(Arc::downgrade(&edge)));
        let sink = Arc::new(Late::default());
        let connection = edge.connect(options(), Arc::clone(&sink) as Arc<dyn DeliverySink>).unwrap();
        sink.of.set((Arc::downgrade(&edge), connection)).unwrap();
        edge.fail(&mut edge.lock(), "no".to_owned());
        edge.drive_if_free();
        let receipts = std::mem::take(&mut *sink.receipts.lock().unwrap());
        assert_eq!(receipts.len(), 1_000);
        for receipt in receipts {
            let told = tokio::time::timeout(std::time::Duration::from_secs(40), receipt).await;
            told.expect("it does not hang").unwrap_err();
        }
    }
}

//! A broker on a disk, with clients, and the ledger of what they were told.
//!
//! It does what the edge of a broker does (gives batches to the store, has messages read back, notes attempts, brings
//! completions back), but on one thread, and only when the history says so. So it does the same whenever it is asked to.

mod restarting;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use corriere_broker::Settings;
use corriere_broker::files::Survival;
use corriere_broker::machine::{Batch, BatchId, ConnectionKey, Effects, Input, Machine, SlotNote, Ticket};
use corriere_broker::store::{
    Attempt, AttemptSlot, MessageStore, StoreError, StoreEvent, StoreOperation, StoredId,
};
use corriere_core::provider::Command;
use corriere_core::{Message, Timestamp};

use crate::asked::Kept;
use crate::clients::Clients;
use crate::describe;
use crate::ground::{Ground, Steps, Trouble};
use crate::ledger::{Judgement, Ledger, Violation};
use crate::play::Crash;
use crate::reach::Reach;

type Read = (StoredId, Result<Arc<Message>, StoreError>);

/// Something that the store said.
#[derive(Debug)]
enum Word {
    Stored(BatchId, Result<(), StoreError>),
    Loaded(Vec<Read>),
    Happened(StoreEvent),
}

type Inbox = Arc<Mutex<VecDeque<Word>>>;

/// A batch that the store was given in this process.
#[derive(Debug)]
struct Given {
    id: BatchId,
    stamp: u64,
    operations: Vec<StoreOperation>,
    outcome: Option<Result<(), StoreError>>,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) ground: Box<dyn Ground>,
    store: Box<dyn Steps>,
    shared: Arc<dyn MessageStore>,
    inbox: Inbox,
    settings: Settings,
    pub(crate) machine: Machine,
    pub(crate) now: Timestamp,
    wake_at: Option<Timestamp>,
    pub(crate) ledger: Ledger,
    pub(crate) clients: Clients,
    /// What was on the disk when the process began.
    base: Kept,
    given: Vec<Given>,
    /// Each note of an attempt, with the disk's operations before and after it.
    notes: Vec<Note>,
    /// Messages that are being read back.
    loading: usize,
    pub(crate) stamp: u64,
    pub(crate) last_number: u64,
    /// Where the process is to end, and where those after it.
    armed: Option<(u64, Crash)>,
    crashes: VecDeque<Crash>,
    /// What survives an end that comes by itself.
    pub(crate) survival: Survival,
    /// Whether what the store holds is not looked at by itself, so that the clients have to find its faults out.
    pub(crate) asks_clients_only: bool,
    /// What goes wrong on the disk from the next start on, once.
    pub(crate) trouble: Option<Trouble>,
    /// What failed on the disk of processes that have ended.
    failures: Vec<String>,
    /// What the process before did on the disk.
    disk_before: Vec<String>,
    /// Whether the store said so.
    pub(crate) has_failed: bool,
    /// What the store said of itself.
    pub(crate) events: Vec<StoreEvent>,
    pub(crate) log: Vec<String>,
    pub(crate) reach: Reach,
}

#[derive(Clone, Copy, Debug)]
struct Note {
    slot: AttemptSlot,
    attempt: Option<Attempt>,
}

impl Given {
    fn take_effect(&self, state: &mut Kept) {
        // What was refused for want of room is not there, whatever came after it.
        if matches!(self.outcome, Some(Err(StoreError::Full { .. }))) {
            state.refuse(&self.operations);
        } else {
            state.apply(&self.operations);
        }
    }
}

impl World {
    /// A broker that begins on what is on the disk.
    pub(crate) fn begin(ground: Box<dyn Ground>, settings: Settings) -> Result<Self, Violation> {
        let store = ground.open().map_err(|error| Violation(format!("it does not open: {error}")))?;
        let shared = store.store();
        let recovered = shared.recover();
        let now = Timestamp(1_000_000);
        let machine = Machine::recovered(settings.clone(), recovered, shared.can_load(), now);
        let mut world = Self {
            ground,
            shared,
            store,
            inbox: Inbox::default(),
            settings,
            machine,
            now,
            wake_at: None,
            ledger: Ledger::default(),
            clients: Clients::default(),
            base: Kept::default(),
            given: Vec::new(),
            notes: Vec::new(),
            loading: 0,
            stamp: 0,
            last_number: 0,
            armed: None,
            crashes: VecDeque::new(),
            survival: Survival::Process,
            asks_clients_only: false,
            trouble: None,
            failures: Vec::new(),
            disk_before: Vec::new(),
            has_failed: false,
            events: Vec::new(),
            log: Vec::new(),
            reach: Reach::default(),
        };
        world.watch();
        Ok(world)
    }

    fn watch(&mut self) {
        let inbox = Arc::clone(&self.inbox);
        self.shared.watch(Box::new(move |event| push(&inbox, Word::Happened(event))));
    }

    /// Whether the process has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.has_failed || self.armed.is_some_and(|(at, _)| self.ground.operations() >= at)
    }

    /// Where this process ends, and those after it.
    pub(crate) fn crash_at(&mut self, crashes: &[Crash]) {
        self.crashes = crashes.iter().copied().collect();
        self.arm();
    }

    fn arm(&mut self) {
        self.armed = self.crashes.pop_front().map(|crash| {
            let at = self.ground.operations() + crash.operation;
            self.ground.crash_at(at, crash.seed);
            (at, crash)
        });
    }

    /// No process ends any more before it is told to.
    pub(crate) fn crash_no_more(&mut self) {
        self.ground.crash_at(u64::MAX, 0);
        (self.armed, self.crashes) = (None, VecDeque::new());
    }

    pub(crate) fn command(
        &mut self,
        connection: ConnectionKey,
        command: Command,
    ) -> Result<Ticket, Violation> {
        let ticket = self.ticket();
        self.submit(connection, ticket, command)?;
        Ok(ticket)
    }

    pub(crate) fn ticket(&mut self) -> Ticket {
        Ticket(self.number())
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(crate) fn submit(
        &mut self,
        connection: ConnectionKey,
        ticket: Ticket,
        command: Command,
    ) -> Judgement {
        self.input(Input::Command { connection, ticket, command })
    }

    pub(crate) fn input(&mut self, input: Input) -> Judgement {
        if self.is_over() {
            return Ok(());
        }
        self.step(input)?;
        self.listen()
    }

    /// Takes in what the store has said.
    fn listen(&mut self) -> Judgement {
        loop {
            let word = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            match word {
                None => return Ok(()),
                Some(Word::Stored(batch, outcome)) => self.stored(batch, outcome)?,
                Some(Word::Loaded(read)) => {
                    self.loading -= read.len();
                    if !self.is_over() {
                        self.reach.loads += read.len() as u64;
                        self.step(Input::Loaded { messages: read })?;
                    }
                }
                Some(Word::Happened(event)) => {
                    if !self.is_over() {
                        self.log.push(format!("    the store says {event:?}"));
                        self.events.push(event.clone());
                        self.happened(event)?;
                    }
                }
            }
        }
    }

    fn happened(&mut self, event: StoreEvent) -> Judgement {
        match event {
            StoreEvent::Full { reason } => {
                self.reach.full += 1;
                self.step(Input::StoreFull { reason })
            }
            StoreEvent::Room => self.step(Input::StoreRoom),
            // A broker ends when its store has failed.
            _ => {
                self.has_failed = true;
                Ok(())
            }
        }
    }

    fn stored(&mut self, batch: BatchId, outcome: Result<(), StoreError>) -> Judgement {
        if !self.is_over() {
            self.log.push(format!("    batch {} is complete: {outcome:?}", batch.0));
        }
        let given = self.given.iter_mut().find(|given| given.id == batch).expect("a batch that was given");
        if let Some(before) = given.outcome.replace(outcome.clone()) {
            return Err(Violation(format!("{batch:?} is complete twice: {before:?}, then {outcome:?}")));
        }
        // What came of the end itself was told to nobody.
        if outcome.is_err() && self.is_over() {
            return Ok(());
        }
        if self.has_failed {
            return Err(Violation(format!("{batch:?} is confirmed by a store that has failed")));
        }
        self.step(Input::Stored { batch, outcome })
    }

    fn step(&mut self, input: Input) -> Judgement {
        self.stamp += 1;
        let effects = self.machine.step(self.now, input);
        self.perform(effects)
    }

    fn perform(&mut self, effects: Effects) -> Judgement {
        self.wake_at = effects.wake_at;
        for SlotNote { slot, attempt, .. } in effects.attempts {
            if !self.is_over() {
                self.log.push(format!("    note {slot:?} {attempt:?}"));
                self.notes.push(Note { slot, attempt });
                self.reach.attempts += 1;
                self.shared.note_attempt(slot, attempt);
            }
        }
        if effects.takes_sends && !self.is_over() {
            self.shared.take_sends();
        }
        for Batch { id, operations, .. } in effects.store {
            if self.is_over() {
                continue;
            }
            self.log.push(describe::batch(id.0, &operations));
            self.given.push(Given { id, stamp: self.stamp, operations: operations.clone(), outcome: None });
            let inbox = Arc::clone(&self.inbox);
            self.shared
                .submit(operations, Box::new(move |outcome, _| push(&inbox, Word::Stored(id, outcome))));
        }
        if !effects.load.is_empty() && !self.is_over() {
            self.loading += effects.load.len();
            let inbox = Arc::clone(&self.inbox);
            self.shared.load(effects.load, Box::new(move |read| push(&inbox, Word::Loaded(read))));
        }
        for (connection, batch) in effects.deliveries {
            for dispatch in batch {
                self.log.push(describe::delivery(connection, &dispatch));
                self.deliver(connection, &dispatch)?;
            }
        }
        for (ticket, outcome) in effects.confirmations {
            if let Err(error) = &outcome {
                self.log.push(format!("    t{}: {error}", ticket.0));
            }
            self.ledger.heard(ticket, outcome)?;
        }
        self.ledger.step_is_over()?;
        self.check_counts()
    }

    fn check_counts(&self) -> Judgement {
        for destination in self.machine.destinations() {
            let counts = self.machine.counts(&destination).unwrap_or_default();
            if !counts.are_conserved() {
                return Err(Violation(format!("{destination}: {counts:?}")));
            }
        }
        Ok(())
    }

    /// The store writes what waits.
    pub(crate) fn write(&mut self) -> Judgement {
        if self.is_over() {
            return Ok(());
        }
        self.store.write();
        self.listen()
    }

    pub(crate) fn housekeep(&mut self) -> Judgement {
        if self.is_over() {
            return Ok(());
        }
        self.store.housekeep();
        self.listen()
    }

    pub(crate) fn checkpoint(&mut self) -> Judgement {
        if self.is_over() {
            return Ok(());
        }
        if let Err(error) = self.store.checkpoint() {
            self.log.push(format!("    the checkpoint fails: {error}"));
        }
        self.listen()
    }

    /// Lets time pass, and wakes the broker where it asked for it.
    pub(crate) fn advance(&mut self, millis: u64) -> Judgement {
        let end = Timestamp(self.now.0 + millis);
        while let Some(wake_at) = self.wake_at.filter(|wake_at| *wake_at <= end)
            && !self.is_over()
        {
            self.now = self.now.max(wake_at);
            self.input(Input::Tick)?;
            if self.wake_at == Some(wake_at) {
                break;
            }
        }
        self.now = end;
        self.input(Input::Tick)
    }

    /// Whether anything that the store was asked for is not answered.
    pub(crate) fn waits(&self) -> bool {
        self.loading > 0 || self.given.iter().any(|given| given.outcome.is_none())
    }
}

fn push(inbox: &Inbox, word: Word) {
    inbox.lock().unwrap_or_else(PoisonError::into_inner).push_back(word);
}

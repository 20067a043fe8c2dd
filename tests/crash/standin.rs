//! A store that is a list of batches, and lies when it is asked to: what finds no fault with that finds none at all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corriere_broker::files::{Fault, Survival};
use corriere_broker::store::{
    Attempt, AttemptSlot, Completion, Loaded, MessageStore, Recovered, Safety, StoreError, StoreOperation,
    StoredId, Sweep,
};
use corriere_core::Message;

use crate::asked::Kept;
use crate::ground::{Ground, Steps};
use corriere_tests::random::Random;

/// What a faulty store does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    None,
    /// A batch that was confirmed is lost with the process.
    LosesTheLast,
    /// An acknowledgement is never written.
    ForgetsAcknowledgements,
    /// A message is kept twice.
    Doubles,
    /// Of a batch that the end of the process hits a part is kept.
    TearsBatches,
    /// What was sent first stands last.
    Reorders,
    /// A delivery is counted that never was.
    CountsTooMuch,
    /// What a transaction that was not committed did is kept.
    CommitsByItself,
    /// Bodies come back shorter.
    CutsBodies,
    /// A prepared transaction is over with the process.
    ForgetsPrepared,
    /// Confirms before it writes.
    ConfirmsEarly,
    /// Of those that a message of a topic goes to only the first gets it.
    KeepsOneCopy,
    /// A durable subscription is over with the process.
    ForgetsSubscriptions,
    /// One that was removed is there again.
    ForgetsUnsubscribing,
    /// One that was made anew is what it was.
    MakesNothingAnew,
    /// One gets what its own client sends, which it was to leave out.
    ForgetsNoLocal,
}

pub(crate) const LIES: &[Lie] = &[
    Lie::LosesTheLast,
    Lie::ForgetsAcknowledgements,
    Lie::Doubles,
    Lie::TearsBatches,
    Lie::Reorders,
    Lie::CountsTooMuch,
    Lie::CommitsByItself,
    Lie::CutsBodies,
    Lie::ForgetsPrepared,
    Lie::ConfirmsEarly,
    Lie::KeepsOneCopy,
    Lie::ForgetsSubscriptions,
    Lie::ForgetsUnsubscribing,
    Lie::MakesNothingAnew,
    Lie::ForgetsNoLocal,
];

/// The disk of a stand-in.
#[derive(Clone, Debug)]
pub(crate) struct StandIn {
    lie: Lie,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    operations: u64,
    crash: Option<(u64, u64)>,
    is_over: bool,
    base: Kept,
    messages: BTreeMap<StoredId, Arc<Message>>,
    waiting: Vec<(Vec<StoreOperation>, Completion)>,
    written: Vec<Vec<StoreOperation>>,
    synced: usize,
    attempts: BTreeMap<AttemptSlot, Attempt>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("operations", &self.operations).finish_non_exhaustive()
    }
}

impl StandIn {
    pub(crate) fn new(lie: Lie) -> Self {
        Self { lie, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether the next operation is done.
    fn operate(&mut self) -> bool {
        if self.is_over {
            return false;
        }
        self.operations += 1;
        self.is_over = self.crash.is_some_and(|(at, _)| self.operations >= at);
        !self.is_over
    }
}

fn ended() -> StoreError {
    StoreError::Io("the process has ended".to_owned())
}

impl MessageStore for StandIn {
    fn recover(&self) -> Recovered {
        self.state().base.recovered()
    }

    fn submit(&self, batch: Vec<StoreOperation>, completion: Completion) {
        let mut completion = Some(completion);
        if self.lie == Lie::ConfirmsEarly
            && let Some(completion) = completion.take()
        {
            completion(Ok(()), Sweep::Ends);
        }
        let mut state = self.state();
        for operation in &batch {
            match operation {
                StoreOperation::Append { stored, message, .. } => {
                    state.messages.insert(*stored, Arc::clone(message));
                }
                StoreOperation::Publish { stored, subscriptions, message, .. } => {
                    let names = (0..subscriptions.len()).map(|place| stored.with(place));
                    state.messages.extend(names.map(|stored| (stored, Arc::clone(message))));
                }
                _ => {}
            }
        }
        state.waiting.push((batch, completion.unwrap_or_else(|| Box::new(|_, _| ()))));
    }

    fn can_load(&self) -> bool {
        true
    }

    fn load(&self, wanted: Vec<StoredId>, completion: Loaded) {
        let state = self.state();
        let read = |stored| match state.messages.get(&stored) {
            Some(message) if self.lie == Lie::CutsBodies => Ok(Arc::new(cut(message))),
            Some(message) => Ok(Arc::clone(message)),
            None => Err(StoreError::NotKept { stored }),
        };
        let found = wanted.into_iter().map(|stored| (stored, read(stored))).collect();
        drop(state);
        completion(found);
    }

    fn note_attempt(&self, slot: AttemptSlot, attempt: Option<Attempt>) {
        let mut state = self.state();
        if state.operate() {
            match attempt {
                Some(attempt) => state.attempts.insert(slot, attempt),
                None => state.attempts.remove(&slot),
            };
        }
    }
}

fn cut(message: &Message) -> Message {
    let mut short = message.clone();
    short.clear_body();
    short
}

impl Steps for StandIn {
    fn store(&self) -> Arc<dyn MessageStore> {
        Arc::new(self.clone())
    }

    fn write(&self) {
        let waiting = std::mem::take(&mut self.state().waiting);
        let mut later = Vec::new();
        for (batch, completion) in waiting {
            let is_written = self.state().operate();
            let safety = StoreOperation::safety(&batch);
            self.state().written.push(batch);
            if !is_written {
                if self.lie != Lie::TearsBatches {
                    self.state().written.pop();
                }
                completion(Err(ended()), Sweep::Ends);
            } else if safety == Safety::Durable {
                later.push(completion);
            } else {
                completion(Ok(()), Sweep::Ends);
            }
        }
        let mut state = self.state();
        let is_synced = state.operate();
        if is_synced {
            state.synced = state.written.len();
        }
        drop(state);
        for completion in later {
            completion(if is_synced { Ok(()) } else { Err(ended()) }, Sweep::Ends);
        }
    }

    fn housekeep(&self) {}

    fn checkpoint(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Ground for StandIn {
    fn open(&self) -> Result<Box<dyn Steps>, String> {
        Ok(Box::new(self.clone()))
    }

    fn operations(&self) -> u64 {
        self.state().operations
    }

    fn crash_at(&self, operation: u64, seed: u64) {
        self.state().crash = Some((operation, seed));
    }

    fn survive(&self, how: Survival) -> Box<dyn Ground> {
        let mut state = self.state();
        state.is_over = true;
        state.waiting.clear();
        let mut count = match how {
            Survival::Process => state.written.len(),
            Survival::OnlySynced => state.synced,
            Survival::PowerCut { seed } => {
                let unsynced = (state.written.len() - state.synced) as u64;
                state.synced + usize::try_from(Random::new(seed).below(unsynced + 1)).expect("small")
            }
        };
        if self.lie == Lie::LosesTheLast {
            count = count.saturating_sub(1);
        }
        let mut base = state.base.clone();
        for (number, batch) in state.written.iter().take(count).enumerate() {
            let torn = self.lie == Lie::TearsBatches && number + 1 == count && how != Survival::OnlySynced;
            let is_left_out = |operation: &&StoreOperation| {
                self.lie == Lie::MakesNothingAnew && base.is_made_anew_by(operation)
            };
            let kept: Vec<_> = batch
                .iter()
                .filter(|operation| !is_left_out(operation))
                .filter_map(|operation| self.believe(operation))
                .collect();
            base.apply(if torn { &kept[..kept.len() / 2] } else { &kept });
        }
        match self.lie {
            Lie::Doubles => base.double_the_last(),
            Lie::Reorders => base.turn_around(),
            Lie::CommitsByItself => base.commit_all(),
            Lie::ForgetsPrepared => base.forget_prepared(),
            _ => {}
        }
        base.restart();
        for attempt in state.attempts.values() {
            let more = u32::from(self.lie == Lie::CountsTooMuch);
            base.attempt(attempt.stored, attempt.delivery + more);
        }
        let next = State { base, messages: state.messages.clone(), ..State::default() };
        Box::new(Self { lie: self.lie, state: Arc::new(Mutex::new(next)) })
    }

    fn fail(&self, _fault: Fault) {}

    fn limit(&self, _bytes: Option<u64>) {}

    fn bytes(&self) -> u64 {
        0
    }

    fn log(&self) -> Vec<String> {
        Vec::new()
    }
}

impl StandIn {
    fn believe(&self, operation: &StoreOperation) -> Option<StoreOperation> {
        let mut kept = operation.clone();
        match (self.lie, &mut kept) {
            (Lie::ForgetsAcknowledgements, StoreOperation::Remove { .. })
            | (Lie::ForgetsSubscriptions, StoreOperation::CreateSubscription { .. })
            | (Lie::ForgetsUnsubscribing, StoreOperation::RemoveSubscription(_)) => return None,
            (Lie::ForgetsNoLocal, StoreOperation::CreateSubscription { no_local, .. }) => *no_local = false,
            (Lie::KeepsOneCopy, StoreOperation::Publish { subscriptions, .. }) => subscriptions.truncate(1),
            _ => {}
        }
        Some(kept)
    }
}

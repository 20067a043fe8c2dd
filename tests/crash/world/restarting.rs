//! The end of a process, the start of the next, and what that one finds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use corriere_broker::files::Survival;
use corriere_broker::machine::{Input, Machine};
use corriere_broker::store::{Recipient, Recovered, Safety, StoreOperation, StoredId};
use corriere_core::Message;

use super::{Given, Inbox, Note, Read, World};
use crate::ground::Steps;
use crate::ledger::{Branch, Certainty, Findings, Found, Judgement, Kind, Violation};

/// What recorded files say of a fault.
const FAULT: &str = "a fault that was asked for";

impl World {
    /// The process ends, where it was to or here, and another begins on what is left. What it finds is held against
    /// what is known.
    pub(crate) fn restart(&mut self) -> Judgement {
        let mut process_only = true;
        loop {
            self.ground.limit(None);
            let survival = self.armed.map_or(self.survival, |(_, crash)| crash.survival);
            self.log.push(format!("the process ends: {survival:?}"));
            self.reach.crashes += 1;
            process_only &= survival == Survival::Process;
            self.failures = self.failures();
            self.look_at_disk();
            self.ground = self.ground.survive(survival);
            self.arm();
            let trouble = self.trouble.take();
            if let Some(trouble) = trouble {
                trouble.make(&*self.ground);
            }
            match self.ground.open() {
                Ok(store) => {
                    if process_only && !self.failures.iter().any(|line| line.contains("/attempts")) {
                        self.count_what_is_in_hands();
                    }
                    let base = self.base.clone();
                    match self.start_on(store, process_only) {
                        // What does not open with a disk that cannot be read opens with one that can.
                        Err(Violation(text)) if trouble.is_some() && text.contains(FAULT) => self.base = base,
                        judgement => return judgement,
                    }
                }
                Err(error) if self.is_over() || trouble.is_some() => {
                    self.log.push(format!("it does not open: {error}"));
                }
                Err(error) => return Err(Violation(format!("it does not open: {error}"))),
            }
        }
    }

    /// Keeps what the process did on the disk.
    fn look_at_disk(&mut self) {
        self.disk_before = self.ground.log();
        let count = |what: &str, and: &str| {
            self.disk_before.iter().filter(|line| line.contains(what) && line.contains(and)).count() as u64
        };
        self.reach.recycled +=
            count("rename", " to /data/broker/journal/spare-") - count("rename", ".new to");
        self.reach.large += count("create", ".large");
    }

    /// What this process and the one before did on the disk.
    pub(crate) fn disk(&self) -> Vec<String> {
        let between = ["the next process:".to_owned()];
        self.disk_before.iter().cloned().chain(between).chain(self.ground.log()).collect()
    }

    /// What failed on the disk so far.
    pub(crate) fn failures(&self) -> Vec<String> {
        let failed = self.ground.log().into_iter().filter(|line| line.contains(" fails: "));
        self.failures.iter().cloned().chain(failed).collect()
    }

    /// The store ends in order, and is opened again on what was synced.
    pub(crate) fn close_and_open(&mut self) -> Judgement {
        self.log.push("the store is closed".to_owned());
        self.shared.close();
        self.listen()?;
        self.look_at_disk();
        self.ground = self.ground.survive(Survival::OnlySynced);
        let store = self.ground.open().map_err(|error| Violation(format!("it does not open: {error}")))?;
        self.start_on(store, true)
    }

    fn start_on(&mut self, store: Box<dyn Steps>, process_only: bool) -> Judgement {
        self.store = store;
        self.shared = self.store.store();
        let recovered = self.shared.recover();
        self.judge_store(&recovered, process_only)?;
        let findings = self.read_all(&recovered)?;
        let certainty = self.certainty(process_only);
        self.ledger.judge(&findings, self.now, &certainty)?;
        (self.reach.made_anew, self.reach.left_out) = self.ledger.durable_reach();
        self.reach.recovered_branches += recovered.prepared.len() as u64;
        self.clients.forget_all(&recovered);
        self.inbox = Inbox::default();
        self.given.clear();
        self.notes.clear();
        self.events.clear();
        self.has_failed = false;
        self.stamp = 0;
        self.loading = 0;
        self.watch();
        self.machine = Machine::recovered(self.settings.clone(), recovered, self.shared.can_load(), self.now);
        self.input(Input::Tick)
    }

    pub(crate) fn certainty(&self, process_only: bool) -> Certainty {
        let done = |least| {
            let (before, behind) = self.given.split_at(self.known(least));
            let last = before.last().map(|given| given.stamp).unwrap_or_default();
            // Of the same step there may be more, of which nothing is known.
            let is_whole = behind.first().is_none_or(|next| next.stamp > last);
            if is_whole { last } else { last - 1 }
        };
        Certainty { process_only, written: done(Safety::Written), durable: done(Safety::Durable) }
    }

    /// How many batches are kept: up to the last of those that had to be so safe and are complete.
    fn known(&self, least: Safety) -> usize {
        let is_kept = |given: &Given| {
            given.outcome == Some(Ok(())) && StoreOperation::safety(&given.operations) >= least
        };
        self.given.iter().rposition(is_kept).map_or(0, |last| last + 1)
    }

    /// What was brought back is what the first so many batches made: all that were confirmed, none in part.
    fn judge_store(&mut self, recovered: &Recovered, process_only: bool) -> Judgement {
        let batches: Vec<&Given> = self.given.iter().collect();
        let known = self.known(if process_only { Safety::Written } else { Safety::Durable });
        self.reach.unconfirmed_batches += (batches.len() - known) as u64;
        let mut state = self.base.clone();
        batches[..known].iter().for_each(|given| given.take_effect(&mut state));
        let mut differences = Vec::new();
        for next in known..=batches.len() {
            let mut after = state.clone();
            after.restart();
            let difference = after.difference(recovered, |stored, failed, found| {
                self.may_be_counted(stored, failed, found, process_only)
            });
            let Some(difference) = difference.filter(|_| !self.asks_clients_only) else {
                self.reach.counted_attempts += after.count_attempts(recovered);
                self.base = after;
                return Ok(());
            };
            differences.push(format!("after {next} batches: {difference}"));
            if let Some(given) = batches.get(next) {
                given.take_effect(&mut state);
            }
        }
        Err(Violation(format!(
            "the store holds what no number of whole batches makes, from {known} that are confirmed to {} that it was \
             given:\n{}",
            batches.len(),
            differences.join("\n")
        )))
    }

    /// Whether so many failed deliveries may have come of those that the batches say and of the noted attempts.
    fn may_be_counted(&self, stored: StoredId, failed: u32, found: u32, process_only: bool) -> bool {
        let noted = |notes: &[Note]| {
            let mut slots = BTreeMap::new();
            for note in notes {
                slots.insert(note.slot, note.attempt);
            }
            let attempts = slots.into_values().flatten().filter(|attempt| attempt.stored == stored);
            attempts.map(|attempt| attempt.delivery).max().unwrap_or_default()
        };
        if !process_only || self.failures().iter().any(|line| line.contains("/attempts")) {
            // Any of them may be on the disk.
            let all = self.notes.iter().filter_map(|note| note.attempt);
            let most = all.filter(|attempt| attempt.stored == stored).map(|attempt| attempt.delivery).max();
            return (failed..=failed.max(most.unwrap_or_default())).contains(&found);
        }
        // The last one may be what the process ended in.
        let before = &self.notes[..self.notes.len().saturating_sub(1)];
        [noted(&self.notes), noted(before)].iter().any(|noted| failed.max(*noted) == found)
    }

    fn read_all(&mut self, recovered: &Recovered) -> Result<Findings, Violation> {
        let mut findings = Findings::default();
        for queue in &recovered.queues {
            let ids = queue.messages.iter().map(|message| message.stored).collect();
            let messages = self.read(ids)?;
            self.reach.recovered_messages += messages.len() as u64;
            let states = queue.messages.iter().map(|message| message.state.failed_deliveries);
            let found = messages.into_iter().zip(states).map(|(message, failed)| Found { message, failed });
            findings.queues.insert(queue.destination.clone(), found.collect());
            findings.totals.insert(queue.destination.clone(), queue.totals);
        }
        for found in &recovered.subscriptions {
            let kind = Kind { topic: found.topic.clone(), no_local: found.no_local };
            findings.kinds.insert(found.subscription.clone(), kind);
            let messages = self.read(found.messages.iter().map(|message| message.stored).collect())?;
            self.reach.recovered_copies += messages.len() as u64;
            let states = found.messages.iter().map(|message| message.state.failed_deliveries);
            let found_there = messages.into_iter().zip(states);
            let found_there = found_there.map(|(message, failed)| Found { message, failed });
            findings.subscriptions.insert(found.subscription.clone(), found_there.collect());
        }
        for branch in &recovered.prepared {
            let (mut sends, mut copies) = (Vec::new(), Vec::new());
            let read = self.read(branch.sends.iter().map(|(_, message)| message.stored).collect())?;
            for ((to, _), message) in branch.sends.iter().zip(read) {
                match to {
                    Recipient::Queue(_) => sends.push(message),
                    Recipient::Subscription(name) => copies.push((name.clone(), message)),
                }
            }
            let settled = branch.acknowledged.iter().map(|stored| {
                self.base
                    .id_of(*stored)
                    .ok_or_else(|| Violation(format!("{:?} acknowledges {stored:?}", branch.xid)))
            });
            let settled = settled.collect::<Result<_, _>>()?;
            findings.prepared.push(Branch { xid: branch.xid.clone(), sends, copies, settled });
        }
        Ok(findings)
    }

    /// Reads messages back.
    fn read(&self, ids: Vec<StoredId>) -> Result<Vec<Arc<Message>>, Violation> {
        let inbox = Arc::new(Mutex::new(None));
        let answer = Arc::clone(&inbox);
        self.shared.load(
            ids,
            Box::new(move |read| *answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(read)),
        );
        self.store.write();
        let read: Option<Vec<Read>> = inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
        let read = read.ok_or_else(|| Violation("a load was not answered".to_owned()))?;
        read.into_iter()
            .map(|(stored, read)| {
                read.map_err(|error| Violation(format!("message {} cannot be read: {error}", stored.0)))
            })
            .collect()
    }
}

//! What each producer sent last, by which a send is recognised that was sent before.
//!
//! While it is not known what becomes of the first, as the end of its transaction is with the store or still to come, the second
//! one is refused: neither twice nor not at all would be right.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use corriere_core::MessageId;
use corriere_core::provider::{Confirmation, ProviderError, SendMessage};

use super::Machine;
use super::effects::ConnectionKey;
use super::line::Arrived;

/// So many producers are remembered, those that sent last.
const REMEMBERED: usize = 1_024;

/// So many sends of a producer that were passed by later ones are remembered as not stored.
const PASSED: u64 = 1_024;

/// The last stored sequence of each of the producers that sent last, and the sends that are with the store.
#[derive(Debug, Default)]
pub(super) struct Producers {
    last: HashMap<Arc<str>, Last>,
    by_use: BTreeMap<u64, Arc<str>>,
    uses: u64,
    /// What transactions send that are with the store to be committed or prepared, or are prepared.
    in_doubt: HashSet<MessageId>,
    /// Sends outside transactions that the store has not confirmed, with those that sent them again.
    under_way: HashMap<MessageId, Vec<Arrived>>,
}

#[derive(Debug)]
struct Last {
    sequence: u64,
    /// Those before it that are not stored, as they were refused or wait: sent again they are no duplicates.
    passed: Passed,
    used: u64,
}

impl Producers {
    /// What the store brought back, those used longest ago first.
    pub(super) fn recovered(producers: Vec<(Arc<str>, u64)>) -> Self {
        let mut recovered = Self::default();
        for (producer, sequence) in producers {
            // Who sends again after a crash does not know what became of it, and sends in order: nothing was passed.
            recovered.remember(&producer, Last { sequence, passed: Passed::default(), used: 0 });
        }
        recovered
    }

    /// Notes that a message is stored.
    pub(super) fn note(&mut self, id: &MessageId) {
        if let Some(last) = self.last.get_mut(&id.producer) {
            last.stored(id.sequence);
            if last.used < self.uses {
                self.uses += 1;
                self.by_use.remove(&last.used);
                self.by_use.insert(self.uses, Arc::clone(&id.producer));
                last.used = self.uses;
            }
            return;
        }
        let mut last = Last { sequence: 0, passed: Passed::default(), used: 0 };
        last.stored(id.sequence);
        self.remember(&id.producer, last);
    }

    fn remember(&mut self, producer: &Arc<str>, last: Last) {
        self.uses += 1;
        self.last.insert(Arc::clone(producer), Last { used: self.uses, ..last });
        self.by_use.insert(self.uses, Arc::clone(producer));
        if self.last.len() > REMEMBERED
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.last.remove(&oldest);
        }
    }

    /// Notes that a send outside a transaction is given to the store.
    pub(super) fn begin(&mut self, id: &MessageId) {
        self.under_way.insert(id.clone(), Vec::new());
    }

    /// The store is done with it: who else is to be told.
    pub(super) fn end(&mut self, id: &MessageId) -> Vec<Arrived> {
        self.under_way.remove(id).unwrap_or_default()
    }

    /// Notes that what becomes of a message is not known before the end of its transaction.
    pub(super) fn doubt(&mut self, id: Option<&MessageId>) {
        self.in_doubt.extend(id.cloned());
    }

    /// It is known now.
    pub(super) fn doubt_no_more(&mut self, id: Option<&MessageId>) {
        if let Some(id) = id {
            self.in_doubt.remove(id);
        }
    }

    /// Whether a message was sent before and is stored, or may be.
    fn have(&self, id: &MessageId) -> bool {
        self.under_way.contains_key(id) || self.in_doubt.contains(id) || self.knows(id)
    }

    fn knows(&self, id: &MessageId) -> bool {
        self.last
            .get(&id.producer)
            .is_some_and(|last| id.sequence <= last.sequence && !last.passed.contains(id.sequence))
    }
}

impl Last {
    fn stored(&mut self, sequence: u64) {
        if sequence <= self.sequence {
            self.passed.remove(sequence);
            return;
        }
        self.passed.pass(self.sequence + 1, sequence - 1);
        self.sequence = sequence;
    }
}

/// Sequences that were passed, at most [`PASSED`], the latest ones.
///
/// As ranges, since all that a producer sends without storing it is passed: a stored message behind a thousand others costs no
/// more than one behind one.
#[derive(Debug, Default)]
struct Passed {
    /// The last of each range by its first.
    ranges: BTreeMap<u64, u64>,
    count: u64,
}

impl Passed {
    /// Notes those from `first` to `last`, which are later than all that were noted.
    fn pass(&mut self, first: u64, last: u64) {
        if first > last {
            return;
        }
        self.ranges.insert(first, last);
        self.count += last - first + 1;
        while self.count > PASSED
            && let Some((first, last)) = self.ranges.pop_first()
        {
            let surplus = self.count - PASSED;
            let length = last - first + 1;
            self.count -= surplus.min(length);
            if surplus < length {
                self.ranges.insert(first + surplus, last);
            }
        }
    }

    fn contains(&self, sequence: u64) -> bool {
        self.range_of(sequence).is_some()
    }

    fn remove(&mut self, sequence: u64) {
        let Some((first, last)) = self.range_of(sequence) else { return };
        self.ranges.remove(&first);
        self.count -= 1;
        if first < sequence {
            self.ranges.insert(first, sequence - 1);
        }
        if sequence < last {
            self.ranges.insert(sequence + 1, last);
        }
    }

    fn range_of(&self, sequence: u64) -> Option<(u64, u64)> {
        let (first, last) = self.ranges.range(..=sequence).next_back()?;
        (sequence <= *last).then_some((*first, *last))
    }
}

impl Machine {
    /// Whether a send was sent before, so that it needs no room.
    pub(super) fn came_before(&self, connection: ConnectionKey, send: &SendMessage) -> bool {
        self.is_stored(connection, &send.message)
            && send.message.headers().message_id.as_ref().is_some_and(|id| self.producers.have(id))
    }

    /// Whether a send was sent before: then it is dropped and answered as the first one was, or refused while that is in
    /// doubt.
    pub(super) fn is_resent(&mut self, arrived: Arrived, send: &SendMessage) -> bool {
        let Some(id) = &send.message.headers().message_id else { return false };
        if !self.is_stored(arrived.connection, &send.message) {
            return false;
        }
        let is_known = self.producers.knows(id);
        if !is_known {
            let is_transacted = send.transaction.is_some();
            if self.producers.in_doubt.contains(id)
                || (is_transacted && self.producers.under_way.contains_key(id))
            {
                let error = ProviderError::InDoubt { message_id: id.to_string() };
                if let Some(transaction) = self.transaction_of(arrived.connection, send) {
                    transaction.fail(&error);
                }
                self.confirm(arrived.ticket, Err(error));
                return true;
            }
            let Some(waiting) = self.producers.under_way.get_mut(id) else { return false };
            waiting.push(arrived);
        }
        if let Some(target) =
            send.message.headers().destination.as_ref().and_then(|destination| self.target(destination))
            && let Some(counts) = self.counts_of(target)
        {
            counts.duplicates += 1;
        }
        if is_known {
            self.confirm(arrived.ticket, Ok(Confirmation::Done));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_passed_is_what_a_set_of_the_latest_would_have(
            steps in prop::collection::vec((1_u64..2_000, any::<bool>(), any::<prop::sample::Index>()), 1..40)
        ) {
            let mut last = Last { sequence: 0, passed: Passed::default(), used: 0 };
            let (mut sequence, mut passed) = (0_u64, BTreeSet::new());
            for (gap, is_late, which) in steps {
                if is_late && !passed.is_empty() {
                    let late = *which.get(&passed.iter().copied().collect::<Vec<_>>());
                    last.stored(late);
                    passed.remove(&late);
                } else {
                    passed.extend(sequence + 1..sequence + gap);
                    sequence += gap;
                    last.stored(sequence);
                    while passed.len() as u64 > PASSED {
                        passed.pop_first();
                    }
                }
                prop_assert_eq!(last.passed.count, passed.len() as u64);
                let numbers = last.passed.ranges.iter().flat_map(|(first, last)| *first..=*last);
                prop_assert!(numbers.eq(passed.iter().copied()));
                for number in [1, sequence / 2, sequence.saturating_sub(1), sequence, sequence + 1] {
                    prop_assert_eq!(last.passed.contains(number), passed.contains(&number));
                }
            }
        }
    }
}

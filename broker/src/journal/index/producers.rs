//! The last sequence numbers of the producers that sent last.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::weight::of_producer;

/// How many producers are remembered.
pub(super) const REMEMBERED: usize = 1_024;

/// What is remembered of a producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Producer {
    /// The greatest number that it gave a message.
    pub(crate) sequence: u64,
    /// When it sent last, counted in sends.
    pub(crate) used: u64,
}

#[derive(Debug, Default)]
pub(super) struct Producers {
    known: HashMap<Arc<str>, Producer>,
    by_use: BTreeMap<u64, Arc<str>>,
    uses: u64,
    changed: HashSet<Arc<str>>,
    /// Bytes of all of them in a checkpoint.
    weight: u64,
}

impl Producers {
    /// Notes a message; the producer that was used longest ago is forgotten when there are too many.
    pub(super) fn note(&mut self, name: Arc<str>, sequence: u64) {
        let uses = self.uses;
        if let Some(producer) = self.known.get_mut(&name) {
            producer.sequence = producer.sequence.max(sequence);
            if producer.used != uses {
                self.by_use.remove(&producer.used);
                self.uses += 1;
                producer.used = self.uses;
                self.by_use.insert(self.uses, Arc::clone(&name));
            }
        } else {
            self.uses += 1;
            self.restore(Arc::clone(&name), Producer { sequence, used: self.uses });
            if self.known.len() > REMEMBERED
                && let Some((_, oldest)) = self.by_use.pop_first()
            {
                self.weight -= of_producer(&oldest);
                self.known.remove(&oldest);
                self.changed.insert(oldest);
            }
        }
        if !self.changed.contains(&name) {
            self.changed.insert(name);
        }
    }

    /// One that the checkpoint has.
    pub(super) fn restore(&mut self, name: Arc<str>, producer: Producer) {
        self.uses = self.uses.max(producer.used);
        self.by_use.insert(producer.used, Arc::clone(&name));
        self.weight += of_producer(&name);
        self.known.insert(name, producer);
    }

    /// Bytes of all of them in a checkpoint.
    pub(super) fn weight(&self) -> u64 {
        self.weight
    }

    /// All of them, the one used longest ago first.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (Arc<str>, Producer)> {
        self.by_use.values().filter_map(|name| Some((Arc::clone(name), *self.known.get(name)?)))
    }

    /// What changed since the last call; `None` is one that was forgotten.
    pub(super) fn take_changes(&mut self) -> Vec<(Arc<str>, Option<Producer>)> {
        let changed = self.changed.drain();
        changed.map(|name| (Arc::clone(&name), self.known.get(&name).copied())).collect()
    }
}

//! What a container's workers know of each other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use corriere_core::Delivery;
use tokio::task::AbortHandle;

use crate::listener::{Concurrency, ListenerThread};

/// The workers of one container. Decides when there should be one more or one less.
#[derive(Debug)]
pub(super) struct Pool {
    concurrency: Concurrency,
    next: u64,
    workers: BTreeMap<u64, Entry>,
}

/// A worker within its pool.
#[derive(Debug, Default)]
struct Entry {
    subscribed: bool,
    run: Option<Run>,
    task: Option<AbortHandle>,
}

/// A delivery that is with the listener.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) delivery: Delivery,
    pub(super) since: Instant,
    /// Set when the delivery has found its end.
    pub(super) ended: Arc<AtomicBool>,
    /// Where a blocking listener is at work.
    pub(super) thread: Arc<ListenerThread>,
}

/// How many workers there are and what they do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) workers: usize,
    pub(super) busy: usize,
    pub(super) subscribed: usize,
}

impl Pool {
    pub(super) fn new(concurrency: Concurrency) -> Self {
        Self { concurrency, next: 0, workers: BTreeMap::new() }
    }

    pub(super) fn concurrency(&self) -> Concurrency {
        self.concurrency
    }

    pub(super) fn set_concurrency(&mut self, concurrency: Concurrency) {
        self.concurrency = concurrency;
    }

    pub(super) fn summary(&self) -> Summary {
        let count = |is: fn(&Entry) -> bool| self.workers.values().filter(|worker| is(worker)).count();
        Summary {
            workers: self.workers.len(),
            busy: count(|worker| worker.run.is_some()),
            subscribed: count(|worker| worker.subscribed),
        }
    }

    /// Takes in a worker if the lower bound is not reached.
    pub(super) fn add_missing(&mut self) -> Option<u64> {
        (self.workers.len() < self.concurrency.lower()).then(|| self.add())
    }

    /// Takes in a worker if all others are busy and the upper bound is not reached.
    pub(super) fn add_if_all_busy(&mut self) -> Option<u64> {
        self.may_grow().then(|| self.add())
    }

    /// Whether one more worker would be of use, if there is work.
    pub(super) fn may_grow(&self) -> bool {
        self.workers.len() < self.concurrency.upper()
            && self.workers.values().all(|worker| worker.run.is_some())
    }

    fn add(&mut self) -> u64 {
        self.next += 1;
        self.workers.insert(self.next, Entry::default());
        self.next
    }

    pub(super) fn set_task(&mut self, number: u64, task: AbortHandle) {
        if let Some(worker) = self.workers.get_mut(&number) {
            worker.task = Some(task);
        }
    }

    pub(super) fn set_subscribed(&mut self, number: u64, subscribed: bool) {
        if let Some(worker) = self.workers.get_mut(&number) {
            worker.subscribed = subscribed;
        }
    }

    pub(super) fn set_run(&mut self, number: u64, run: Option<Run>) {
        if let Some(worker) = self.workers.get_mut(&number) {
            worker.run = run;
        }
    }

    pub(super) fn remove(&mut self, number: u64) {
        self.workers.remove(&number);
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        self.workers.contains_key(&number)
    }

    /// Lets a worker go that is one too many; it is gone from here when this says so, so that two cannot go for one.
    pub(super) fn retire_surplus(&mut self, number: u64) -> bool {
        self.retire(number, self.concurrency.upper())
    }

    /// Lets a worker go that found nothing to do. The last idle one stays while others are busy and `spare` says that
    /// only an idle worker would see a new message.
    pub(super) fn retire_idle(&mut self, number: u64, spare: bool) -> bool {
        let Summary { workers, busy, .. } = self.summary();
        let is_last_idle = busy > 0 && workers - busy <= 1;
        !(spare && is_last_idle) && self.retire(number, self.concurrency.lower())
    }

    fn retire(&mut self, number: u64, bound: usize) -> bool {
        self.workers.len() > bound && self.workers.remove(&number).is_some()
    }

    /// What every busy worker does.
    pub(super) fn runs(&self) -> Vec<(u64, Run)> {
        self.workers.iter().filter_map(|(number, worker)| Some((*number, worker.run.clone()?))).collect()
    }

    /// The tasks of all workers.
    pub(super) fn tasks(&self) -> Vec<AbortHandle> {
        self.workers.values().filter_map(|worker| worker.task.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_never_leaves_its_bounds() {
        let mut pool = Pool::new(Concurrency::new(2, 3));
        let first = pool.add_missing().unwrap();
        let second = pool.add_missing().unwrap();
        assert_eq!(pool.add_missing(), None);
        assert!(!pool.may_grow(), "two are idle");
        assert!(!pool.retire_idle(first, false) && !pool.retire_surplus(second));

        pool.set_concurrency(Concurrency::ONE);
        assert!(pool.retire_surplus(first));
        assert!(!pool.retire_surplus(second));
        assert!(!pool.contains(first) && pool.contains(second));
        assert_eq!(pool.summary(), Summary { workers: 1, busy: 0, subscribed: 0 });
    }
}

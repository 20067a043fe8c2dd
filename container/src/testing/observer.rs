//! Remembers how the deliveries of a test ended.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::containers::{DeliveryEnd, DeliveryObserver, EndKind};

/// The ends of all deliveries so far, by listener.
#[derive(Debug, Default)]
pub(super) struct Ends(Mutex<HashMap<&'static str, Tally>>);

/// How often the runs of a listener ended in which way.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) acked: u64,
    pub(super) failed: u64,
    /// The failures as text, in the order in which they happened.
    pub(super) failures: Vec<String>,
}

impl Ends {
    pub(super) fn of(&self, listener: &str) -> Tally {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(listener).cloned().unwrap_or_default()
    }
}

impl DeliveryObserver for Ends {
    fn ended(&self, end: &DeliveryEnd) {
        let mut ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tally = ends.entry(end.listener).or_default();
        match &end.failure {
            Some(failure) => {
                tally.failed += 1;
                tally.failures.push(failure.clone());
            }
            None if end.kind == EndKind::Settled => tally.acked += 1,
            None => {}
        }
    }
}

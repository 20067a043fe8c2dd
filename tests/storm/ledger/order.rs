//! The order in which a queue with one consumer gives it each producer's messages.

use std::collections::BTreeMap;

use super::state::State;
use super::{Ledger, Name};

impl Ledger {
    /// A queue with one consumer, and so each durable subscription, gives it each producer's messages in the order of their sends,
    /// each at its first delivery. What comes again to the consumer that gave it back is judged when it comes.
    ///
    /// What comes again to another consumer has no order (decision 5): with a consumer its reservations end, and each message
    /// keeps its own delay. So one that was never delivered overtakes one that failed and waits for its redelivery.
    pub(super) fn judge_order(&self, state: &mut State) {
        let mut last = BTreeMap::<(usize, usize), (u64, Name)>::new();
        let mut faults = Vec::new();
        for name in state.names().filter(|name| state.has_place(*name)) {
            for enqueued in &state.entry(name).enqueued {
                // A send that was not answered has no place that anybody could know, and what a client took that was parted from
                // the broker by then is no delivery of the broker's that others could be held against.
                let Some(first) = enqueued.taken.first().filter(|first| !first.is_void) else { continue };
                if !self.queues[enqueued.queue].is_lone {
                    continue;
                }
                match last.get(&(enqueued.queue, name.producer)) {
                    Some((before, earlier)) if first.at < *before => {
                        faults.push((enqueued.queue, *earlier, name));
                    }
                    _ => drop(last.insert((enqueued.queue, name.producer), (first.at, name))),
                }
            }
        }
        for (queue, earlier, later) in faults {
            let text = format!(
                "{later} overtook {earlier} on {}, which has one consumer:\n{}\n{}",
                self.queues[queue].name,
                self.history(state, later),
                self.history(state, earlier)
            );
            state.violations.push(text);
        }
    }
}

//! What an operator does.

use corriere_broker::machine::Input;
use corriere_core::Destination;
use corriere_tests::model::Judgement;

use super::World;

impl World {
    /// Changes the prefetch of a queue that is there.
    pub(crate) fn set_prefetch(&mut self, queue: &Destination, prefetch: u32) -> Judgement {
        if queue.is_topic() || self.machine.counts(queue).is_none() {
            return Ok(());
        }
        self.input(Input::SetPrefetch { queue: queue.clone(), prefetch })
    }
}

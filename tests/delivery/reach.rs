//! Whether the histories reach what they are for. A generator that stops short of, say, dead letters would let every
//! fault there pass.

use corriere_core::provider::{Confirmation, ProviderError};

use crate::world::World;

/// So many histories come to everything.
const ENOUGH: u64 = 300;

/// How often things happened in all histories together.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    histories: u64,
    acknowledged: u64,
    redelivered: u64,
    dead_lettered: u64,
    moved_in: u64,
    expired: u64,
    discarded: u64,
    recalled: u64,
    sends_that_found_memory_full: u64,
    sends_that_overdrew: u64,
    sends_that_passed_an_oversized_one: u64,
    rolled_back: u64,
    refused_by_the_store: u64,
    sends_that_found_the_store_full: u64,
    prepared: u64,
    prepared_over_a_restart: u64,
    recovered: u64,
    restarts: u64,
    dead_letters_put_off: u64,
    sends_that_met_a_full_store: u64,
    sends_in_doubt: u64,
    /// See [`corriere_tests::model::Model::shown`].
    shown: [u64; 3],
    /// See [`corriere_tests::model::Model::lost_with_temporaries`].
    lost_with_temporaries: [u64; 3],
    acknowledged_as: [u64; 9],
    /// See [`corriere_tests::model::Model::lasted`].
    lasted: [u64; 4],
    /// See [`corriere_tests::model::Model::windows`].
    windows: [u64; 4],
    /// See [`corriere_tests::model::Model::managed`].
    managed: [u64; 7],
    /// See [`corriere_tests::model::Model::by_policy`].
    by_policy: [u64; 2],
    /// See [`corriere_tests::model::Model::loads`].
    loads: [u64; 5],
}

impl Reach {
    /// Adds what happened in a history.
    pub(crate) fn add(&mut self, world: &World) {
        self.histories += 1;
        for destination in world.model.destinations() {
            let counts = world.counts(destination);
            self.acknowledged += counts.acknowledged;
            self.redelivered += counts.redelivered;
            self.dead_lettered += counts.dead_lettered;
            self.moved_in += counts.moved_in;
            self.expired += counts.expired;
            self.discarded += counts.discarded;
            self.recovered += counts.recovered;
        }
        for (sum, more) in self.loads.iter_mut().zip(world.model.loads()) {
            *sum += more;
        }
        for (sum, more) in self.shown.iter_mut().zip(world.model.shown()) {
            *sum += more;
        }
        for (sum, more) in self.lasted.iter_mut().zip(world.model.lasted()) {
            *sum += more;
        }
        for (sum, more) in self.windows.iter_mut().zip(world.model.windows()) {
            *sum += more;
        }
        for (sum, more) in self.managed.iter_mut().zip(world.model.managed()) {
            *sum += more;
        }
        for (sum, more) in self.by_policy.iter_mut().zip(world.model.by_policy()) {
            *sum += more;
        }
        let lost = self.lost_with_temporaries.iter_mut().zip(world.model.lost_with_temporaries());
        lost.for_each(|(sum, more)| *sum += more);
        for (sum, more) in self.acknowledged_as.iter_mut().zip(world.acknowledged_as) {
            *sum += more;
        }
        self.sends_that_met_a_full_store += world.model.waited_again();
        self.sends_in_doubt += world.model.in_doubt();
        self.dead_letters_put_off += world.model.put_offs();
        self.restarts += world.model.restarts();
        self.prepared_over_a_restart += world.model.prepared_over_restarts();
        self.recalled += world.dispatches.iter().filter(|(_, dispatch)| dispatch.epoch > 0).count() as u64;
        self.sends_that_overdrew += world.model.overdrawn();
        self.sends_that_passed_an_oversized_one += world.model.passed();
        for (_, outcome) in &world.confirmations {
            match outcome {
                Err(ProviderError::MemoryFull { .. }) => self.sends_that_found_memory_full += 1,
                Err(ProviderError::StoreFull { .. }) => self.sends_that_found_the_store_full += 1,
                Ok(Confirmation::Prepared { must_commit: true }) => self.prepared += 1,
                Err(ProviderError::RolledBack { .. }) => self.rolled_back += 1,
                Err(ProviderError::Store { .. }) => self.refused_by_the_store += 1,
                _ => {}
            }
        }
    }

    /// Panics if there is anything that none of many histories came to. A handful may well miss something.
    pub(crate) fn assert_is_everywhere(&self) {
        if self.histories < ENOUGH {
            return;
        }
        let all = [
            self.acknowledged,
            self.redelivered,
            self.dead_lettered,
            self.moved_in,
            self.expired,
            self.discarded,
            self.recalled,
            self.sends_that_found_memory_full,
            self.sends_that_overdrew,
            self.sends_that_passed_an_oversized_one,
            self.rolled_back,
            self.refused_by_the_store,
            self.sends_that_found_the_store_full,
            self.prepared,
            self.prepared_over_a_restart,
            self.recovered,
            self.restarts,
            self.dead_letters_put_off,
            self.sends_that_met_a_full_store,
            self.sends_in_doubt,
        ];
        assert!(
            all.iter()
                .chain(&self.loads)
                .chain(&self.shown)
                .chain(&self.lost_with_temporaries)
                .chain(&self.acknowledged_as)
                .chain(&self.lasted)
                .chain(&self.windows)
                .chain(&self.managed)
                .chain(&self.by_policy)
                .all(|count| *count > 0),
            "the histories never came to some of it: {self:?}"
        );
    }
}

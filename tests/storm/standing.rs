//! How a broker stands: what it says of each of its destinations. Shared by the test and the program that it starts.

use corriere::broker::Broker;
use serde::{Deserialize, Serialize};

/// One destination.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Standing {
    pub(crate) name: String,
    pub(crate) pending: u64,
    pub(crate) is_conserved: bool,
    /// All of its counts in words.
    pub(crate) counts: String,
}

/// All destinations of a broker.
pub(crate) fn of(broker: &Broker) -> Vec<Standing> {
    let standing = |destination| {
        let counts = broker.counts(&destination)?;
        Some(Standing {
            name: destination.name().to_owned(),
            pending: counts.pending,
            is_conserved: counts.are_conserved(),
            counts: format!("{counts:?}"),
        })
    };
    broker.destinations().into_iter().filter_map(standing).collect()
}

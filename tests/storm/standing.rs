//! How a broker stands: what it says of each of its destinations and durable subscriptions. Shared by the test and the program that
//! it starts.

use corriere::broker::{Broker, Counts};
use serde::{Deserialize, Serialize};

/// One destination or durable subscription.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Standing {
    pub(crate) name: String,
    /// What waits in it; what is pending of a topic waits in its subscriptions.
    pub(crate) pending: u64,
    pub(crate) is_conserved: bool,
    /// All of its counts in words.
    pub(crate) counts: String,
}

impl Standing {
    fn new(name: &str, pending: u64, counts: &Counts) -> Self {
        let (is_conserved, counts) = (counts.are_conserved(), format!("{counts:?}"));
        Self { name: name.to_owned(), pending, is_conserved, counts }
    }
}

/// All destinations and durable subscriptions of a broker.
pub(crate) fn of(broker: &Broker) -> Vec<Standing> {
    let destinations = broker.destinations().into_iter().filter_map(|destination| {
        let counts = broker.counts(&destination)?;
        let pending = if destination.is_topic() { 0 } else { counts.pending };
        Some(Standing::new(destination.name(), pending, &counts))
    });
    let subscriptions = broker.durable_subscriptions();
    let subscriptions =
        subscriptions.iter().map(|one| Standing::new(&one.name, one.counts.pending, &one.counts));
    destinations.chain(subscriptions).collect()
}

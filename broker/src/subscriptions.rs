//! Durable subscriptions as they are shown to who runs the broker.

use std::sync::Arc;

use corriere_core::Destination;

use crate::counts::Counts;
use crate::store::Totals;

/// A durable subscription and what became of its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DurableSubscription {
    /// Whose it is.
    pub client_id: Arc<str>,
    /// What its client calls it.
    pub name: Arc<str>,
    /// What it is to.
    pub topic: Destination,
    /// Whether messages of its own client are left out.
    pub no_local: bool,
    /// Whether a consumer has it now.
    pub is_active: bool,
    /// Since the broker started, among them what is pending. Those of its topic are the sum over all subscriptions.
    pub counts: Counts,
    /// Of persistent messages, since it was made.
    pub totals: Totals,
}

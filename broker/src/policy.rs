//! Policies: what holds for all destinations whose names fit a pattern.

use corriere_core::{DestinationPattern, RedeliveryOverrides};

use crate::settings::DeadLetters;

/// What holds for the queues, or topics, that fit a pattern; where it says nothing, what the broker's settings say.
///
/// Of several that fit only the most specific one holds; see [`DestinationPattern`]. What a subscription itself wants of its
/// redelivery goes before it.
#[derive(Clone, Debug, PartialEq)]
pub struct DestinationPolicy {
    /// For which destinations.
    pub pattern: DestinationPattern,
    /// When a message whose handling failed comes again.
    pub redelivery: RedeliveryOverrides,
    /// How many messages are sent ahead to a consumer to whose prefetch neither it nor its connection factory has said
    /// anything; 0 counts as 1.
    pub prefetch: Option<u32>,
    /// Where messages go that cannot be delivered.
    pub dead_letters: Option<DeadLetters>,
    /// Whether non-persistent messages are kept as dead letters too.
    pub dead_letter_non_persistent: Option<bool>,
}

impl DestinationPolicy {
    /// One that says nothing yet.
    #[must_use]
    pub fn new(pattern: DestinationPattern) -> Self {
        Self {
            pattern,
            redelivery: RedeliveryOverrides::default(),
            prefetch: None,
            dead_letters: None,
            dead_letter_non_persistent: None,
        }
    }
}

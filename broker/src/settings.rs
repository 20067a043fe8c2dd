//! What can be set for a broker.

use std::time::Duration;

use corriere_core::RedeliveryPolicy;

use crate::policy::DestinationPolicy;

/// The settings of a broker, with Corriere's defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Bytes of messages that memory may hold. Sends beyond that wait until there is room.
    ///
    /// - A single message larger than the limit is admitted when nothing else is there. While it waits, other
    ///   producers pass it.
    /// - A send within a transaction, of a session that holds deliveries which are not settled, does not wait for
    ///   others and may overdraw the limit, up to twice the limit; beyond that it waits like any other. Only its
    ///   commit frees what those deliveries use, so it would otherwise wait for itself.
    /// - Dead letters never wait.
    pub memory_limit: u64,
    /// How long a send may wait for memory.
    pub send_deadline: Duration,
    /// Whether a queue delivers its more urgent messages first; without it, all in the order of their arrival.
    pub priorities: bool,
    /// Where the subscription does not want it otherwise.
    pub redelivery: RedeliveryPolicy,
    /// Where messages go that cannot be delivered.
    pub dead_letters: DeadLetters,
    /// Whether non-persistent messages are kept as dead letters too, instead of being dropped and counted.
    pub dead_letter_non_persistent: bool,
    /// What holds otherwise for some destinations. No two have the same pattern.
    pub policies: Vec<DestinationPolicy>,
}

/// Where messages go that cannot be delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeadLetters {
    /// To a queue for each source: `DLQ.<queue>`, `DLQ.topic.<topic>`.
    #[default]
    Individual,
    /// All to the queue `ActiveMQ.DLQ`.
    Shared,
    /// Nowhere; they are dropped and counted.
    Discard,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            memory_limit: 64 * 1024 * 1024,
            send_deadline: Duration::from_secs(30),
            priorities: true,
            redelivery: RedeliveryPolicy::default(),
            dead_letters: DeadLetters::default(),
            dead_letter_non_persistent: false,
            policies: Vec::new(),
        }
    }
}

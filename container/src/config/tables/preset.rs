//! `preset` in `[broker]`: the defaults of another broker.

use super::super::error::unknown_name;
use super::super::reading::TableReader;
use super::super::value;
use super::broker::DeadLetterKind;

/// Defaults that hold where `[broker]` and the connection factories of its application say nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preset {
    /// ActiveMQ's.
    ActiveMq,
}

impl Preset {
    const ALL: [Self; 1] = [Self::ActiveMq];

    /// Its name in a configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ActiveMq => "activemq",
        }
    }

    /// Bytes of messages that memory may hold.
    #[must_use]
    pub const fn memory_limit(self) -> u64 {
        match self {
            Self::ActiveMq => 1 << 30,
        }
    }

    /// Where messages go that cannot be delivered.
    #[must_use]
    pub const fn dead_letters(self) -> DeadLetterKind {
        match self {
            Self::ActiveMq => DeadLetterKind::Shared,
        }
    }

    /// Whether a queue delivers its more urgent messages first.
    #[must_use]
    pub const fn priorities(self) -> bool {
        match self {
            Self::ActiveMq => false,
        }
    }

    /// What connection factories of the application that lead to the broker have for their consumers, as options of
    /// their URL.
    pub(crate) const fn prefetch(self) -> [(&'static str, &'static str); 3] {
        match self {
            Self::ActiveMq => [
                ("jms.prefetchPolicy.queuePrefetch", "1000"),
                ("jms.prefetchPolicy.topicPrefetch", "32766"),
                ("jms.prefetchPolicy.boundedExtension", "false"),
            ],
        }
    }
}

pub(super) fn read(table: &TableReader<'_>) -> Option<Preset> {
    let named = table.setting("preset", value::text)?;
    let found = Preset::ALL.into_iter().find(|preset| preset.name() == named.value);
    if found.is_none() {
        let known = Preset::ALL.map(|preset| preset.name().to_owned());
        table.problem(unknown_name("preset", &named, known.to_vec()));
    }
    found
}

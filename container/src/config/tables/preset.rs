//! `preset` in `[broker]`: the defaults of another broker.

use super::super::error::unknown_name;
use super::super::reading::TableReader;
use super::super::value;
use super::broker::DeadLetterKind;

pub(super) const NAME: &str = "the name of a preset, \"activemq\"";

/// Defaults that hold where `[broker]` and the connection factories of its application say nothing.
///
/// What the broker it is named for does otherwise and this one cannot do yet is not in it: messages are delivered by
/// priority, and the window of a consumer in a client-acknowledged session of this process is bounded.
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

    /// What connection factories of the application that lead to the broker have for their consumers, as options of
    /// their URL.
    pub(crate) const fn prefetch(self) -> [(&'static str, u32); 2] {
        match self {
            Self::ActiveMq => {
                [("jms.prefetchPolicy.queuePrefetch", 1_000), ("jms.prefetchPolicy.topicPrefetch", 32_766)]
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_says_what_a_preset_sets() {
        let text = include_str!("../../../../docs/configuration.md");
        let preset = Preset::ActiveMq;
        let section =
            text.split("### The preset `activemq`").nth(1).and_then(|rest| rest.split("\n#").next());
        let section = section.expect("docs/configuration.md has a section about it");
        let row = |value: &str| section.lines().find(|line| line.starts_with(&format!("| `{value}`")));
        let says = |value: &str, with: String| {
            let row = row(value).unwrap_or_else(|| panic!("it has no row for `{value}`"));
            assert!(row.ends_with(&format!("| `{with}` |")), "{row}");
        };
        assert_eq!(preset.memory_limit(), 1 << 30);
        says("memory_limit", "\"1GiB\"".to_owned());
        assert_eq!(preset.dead_letters(), DeadLetterKind::Shared);
        says("dead_letters", "\"shared\"".to_owned());
        for (option, prefetch) in preset.prefetch() {
            says(option, prefetch.to_string());
        }
        assert_eq!(
            section.lines().filter(|line| line.starts_with("| `")).count(),
            2 + preset.prefetch().len()
        );
    }
}

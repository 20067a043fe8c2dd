//! `redelivery` in `[broker]` and in its policies.

use corriere_core::RedeliveryOverrides;

use super::super::reading::TableReader;
use super::super::schema::{KeySchema, Kind};
use super::super::value;

/// The keys of a table that says when a message whose handling failed comes again.
pub(super) const KEYS: &[KeySchema] = &[
    KeySchema::new(
        "maximum_redeliveries",
        Kind::Number { least: -1, most: u32::MAX as i64 },
        "Redeliveries after the first delivery, then the dead letters; `-1` for no limit.",
    )
    .expecting("a whole number, or -1 for no limit")
    .default("6")
    .answers("`jms.redeliveryPolicy.maximumRedeliveries`"),
    KeySchema::new("initial_delay", Kind::Duration { may_be_zero: true }, "Before the first redelivery.")
        .default("\"1s\"")
        .answers("`jms.redeliveryPolicy.initialRedeliveryDelay`"),
    KeySchema::new(
        "delay",
        Kind::Duration { may_be_zero: true },
        "Before each further one, where there is no `back_off`.",
    )
    .default("\"1s\"")
    .answers("`jms.redeliveryPolicy.redeliveryDelay`"),
    KeySchema::new(
        "back_off",
        Kind::Factor,
        "The factor from one delay to the next; without it they are all the same.",
    )
    .answers("`jms.redeliveryPolicy.backOffMultiplier`, `useExponentialBackOff`"),
    KeySchema::new("maximum_delay", Kind::Duration { may_be_zero: true }, "The upper bound of a delay.")
        .answers("`jms.redeliveryPolicy.maximumRedeliveryDelay`"),
    KeySchema::new(
        "jitter_percent",
        Kind::Number { least: 0, most: 100 },
        "By how many percent at most a delay is longer or shorter, so that messages that failed together do not come again \
         together.",
    )
    .default("0")
    .answers("`jms.redeliveryPolicy.useCollisionAvoidance`, `collisionAvoidancePercent`"),
    KeySchema::new(
        "non_blocking",
        Kind::Boolean,
        "Whether others go ahead of a message that waits for its redelivery.",
    )
    .default("false")
    .answers("`spring.activemq.non-blocking-redelivery`, `jms.nonBlockingRedelivery`"),
];

/// What the table `redelivery` within another one says.
pub(super) fn read(outer: &TableReader<'_>) -> RedeliveryOverrides {
    let Some(table) = outer.table("redelivery") else { return RedeliveryOverrides::default() };
    RedeliveryOverrides {
        maximum_redeliveries: table.value("maximum_redeliveries", |value| match value::integer(value)? {
            -1 => Some(None),
            number => u32::try_from(number).ok().map(Some),
        }),
        initial_delay: table.value("initial_delay", value::duration),
        delay: table.value("delay", value::duration),
        back_off: table.value("back_off", |value| {
            let factor = value::number(value).filter(|factor| factor.is_finite() && *factor >= 1.0);
            factor.map(Some)
        }),
        maximum_delay: table.value("maximum_delay", |value| value::duration(value).map(Some)),
        jitter_percent: table.value("jitter_percent", |value| {
            u8::try_from(value::integer(value)?).ok().filter(|percent| *percent <= 100)
        }),
        non_blocking: table.value("non_blocking", value::boolean),
    }
}

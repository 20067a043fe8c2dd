//! `redelivery` in `[broker]` and in its policies.

use corriere_core::RedeliveryOverrides;

use super::super::reading::TableReader;
use super::super::schema::{KeySchema, Kind};
use super::super::value;

/// The keys of `[broker.redelivery]`.
pub(super) const KEYS: &[KeySchema] = &[
    MAXIMUM_REDELIVERIES.default("6"),
    INITIAL_DELAY.default("\"1s\""),
    DELAY.default("\"1s\""),
    BACK_OFF,
    MAXIMUM_DELAY,
    JITTER_PERCENT.default("0"),
    NON_BLOCKING.default("false"),
];

/// The same for what is as `[broker.redelivery]` has it where a key is absent.
pub(super) const OVERRIDES: &[KeySchema] =
    &[MAXIMUM_REDELIVERIES, INITIAL_DELAY, DELAY, BACK_OFF, MAXIMUM_DELAY, JITTER_PERCENT, NON_BLOCKING];

const MAXIMUM_REDELIVERIES: KeySchema = KeySchema::new(
    "maximum_redeliveries",
    Kind::Number { least: -1, most: u32::MAX as i64 },
    "Redeliveries after the first delivery, then the dead letters; `-1` for no limit.",
)
.expecting("a whole number, or -1 for no limit")
.answers("`jms.redeliveryPolicy.maximumRedeliveries`");

const INITIAL_DELAY: KeySchema =
    KeySchema::new("initial_delay", Kind::Duration { may_be_zero: true }, "Before the first redelivery.")
        .answers("`jms.redeliveryPolicy.initialRedeliveryDelay`");

const DELAY: KeySchema = KeySchema::new(
    "delay",
    Kind::Duration { may_be_zero: true },
    "Before each further one, where there is no `back_off`.",
)
.answers("`jms.redeliveryPolicy.redeliveryDelay`");

const BACK_OFF: KeySchema = KeySchema::new(
    "back_off",
    Kind::Factor,
    "The factor from one delay to the next; without it they are all the same.",
)
.answers("`jms.redeliveryPolicy.backOffMultiplier`, `useExponentialBackOff`");

const MAXIMUM_DELAY: KeySchema =
    KeySchema::new("maximum_delay", Kind::Duration { may_be_zero: true }, "The upper bound of a delay.")
        .answers("`jms.redeliveryPolicy.maximumRedeliveryDelay`");

const JITTER_PERCENT: KeySchema =
    KeySchema::new(
        "jitter_percent",
        Kind::Number { least: 0, most: 100 },
        "By how many percent at most a delay is longer or shorter, so that messages that failed together do not come again \
         together.",
    )
    .answers("`jms.redeliveryPolicy.useCollisionAvoidance`, `collisionAvoidancePercent`");

const NON_BLOCKING: KeySchema = KeySchema::new(
    "non_blocking",
    Kind::Boolean,
    "Whether others go ahead of a message that waits for its redelivery.",
)
.answers("`spring.activemq.non-blocking-redelivery`, `jms.nonBlockingRedelivery`");

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

//! How often and how late a message that was given back is delivered again.

use std::time::Duration;

use crate::time::Timestamp;

/// The redelivery policy of a subscription, a destination or a broker; the broker counts and decides.
///
/// The defaults are ActiveMQ's: six redeliveries (so seven deliveries), one second apart.
#[derive(Clone, Debug, PartialEq)]
pub struct RedeliveryPolicy {
    /// Redeliveries after the first delivery, then the dead letter queue; `None` for no limit.
    pub maximum_redeliveries: Option<u32>,
    /// Delay before the first redelivery.
    pub initial_delay: Duration,
    /// Delay before each further one, where `back_off` is absent.
    pub delay: Duration,
    /// Factor from one delay to the next, starting at `initial_delay`; `None` for a steady delay. Below 1, and what is no
    /// number, counts as 1.
    pub back_off: Option<f64>,
    /// Upper bound of the delay; `None` for no bound.
    pub maximum_delay: Option<Duration>,
    /// By how many percent at most a delay is longer or shorter than it would be, so that messages that failed together do
    /// not come again together (ActiveMQ's collision avoidance); up to 100, and 0 for no such spread.
    pub jitter_percent: u8,
    /// Whether messages behind one that waits for its redelivery go ahead of it, to anyone.
    pub non_blocking: bool,
}

impl Default for RedeliveryPolicy {
    fn default() -> Self {
        Self {
            maximum_redeliveries: Some(6),
            initial_delay: Duration::from_secs(1),
            delay: Duration::from_secs(1),
            back_off: None,
            maximum_delay: None,
            jitter_percent: 0,
            non_blocking: false,
        }
    }
}

/// What a subscription, or a policy for its destination, wants otherwise than the policy below it says; `None` leaves it as
/// it is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RedeliveryOverrides {
    /// See [`RedeliveryPolicy::maximum_redeliveries`].
    pub maximum_redeliveries: Option<Option<u32>>,
    /// See [`RedeliveryPolicy::initial_delay`].
    pub initial_delay: Option<Duration>,
    /// See [`RedeliveryPolicy::delay`].
    pub delay: Option<Duration>,
    /// See [`RedeliveryPolicy::back_off`].
    pub back_off: Option<Option<f64>>,
    /// See [`RedeliveryPolicy::maximum_delay`].
    pub maximum_delay: Option<Option<Duration>>,
    /// See [`RedeliveryPolicy::jitter_percent`].
    pub jitter_percent: Option<u8>,
    /// See [`RedeliveryPolicy::non_blocking`].
    pub non_blocking: Option<bool>,
}

impl RedeliveryOverrides {
    /// The policy that comes of it.
    #[must_use]
    pub fn over(&self, policy: &RedeliveryPolicy) -> RedeliveryPolicy {
        RedeliveryPolicy {
            maximum_redeliveries: self.maximum_redeliveries.unwrap_or(policy.maximum_redeliveries),
            initial_delay: self.initial_delay.unwrap_or(policy.initial_delay),
            delay: self.delay.unwrap_or(policy.delay),
            back_off: self.back_off.unwrap_or(policy.back_off),
            maximum_delay: self.maximum_delay.unwrap_or(policy.maximum_delay),
            jitter_percent: self.jitter_percent.unwrap_or(policy.jitter_percent),
            non_blocking: self.non_blocking.unwrap_or(policy.non_blocking),
        }
    }
}

impl From<RedeliveryPolicy> for RedeliveryOverrides {
    fn from(policy: RedeliveryPolicy) -> Self {
        Self {
            maximum_redeliveries: Some(policy.maximum_redeliveries),
            initial_delay: Some(policy.initial_delay),
            delay: Some(policy.delay),
            back_off: Some(policy.back_off),
            maximum_delay: Some(policy.maximum_delay),
            jitter_percent: Some(policy.jitter_percent),
            non_blocking: Some(policy.non_blocking),
        }
    }
}

impl RedeliveryPolicy {
    /// Whether a message with this many failed deliveries is beyond the limit.
    #[must_use]
    pub fn is_exhausted(&self, failed_deliveries: u32) -> bool {
        self.maximum_redeliveries.is_some_and(|maximum| failed_deliveries > maximum)
    }

    /// The delay after `failed_deliveries` (at least 1) without jitter, a pure function of the message's own count so that a
    /// row of poison messages never makes one wait for the others (ActiveMQ's AMQ-8617).
    #[must_use]
    pub fn delay_after(&self, failed_deliveries: u32) -> Duration {
        let repeats = failed_deliveries.saturating_sub(1);
        let delay = match self.back_off {
            // Without this, nothing times a factor that has grown to infinity would be no number at all.
            Some(_) if self.initial_delay.is_zero() => Duration::ZERO,
            Some(factor) => {
                let exponent = i32::try_from(repeats).unwrap_or(i32::MAX);
                let seconds = self.initial_delay.as_secs_f64() * factor.max(1.0).powi(exponent);
                Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
            }
            None if repeats == 0 => self.initial_delay,
            None => self.delay,
        };
        self.maximum_delay.map_or(delay, |maximum| delay.min(maximum))
    }

    /// The same with jitter, for one message: a pure function of its count and of `seed`, its name. Never beyond the maximum.
    #[must_use]
    pub fn delay_of(&self, failed_deliveries: u32, seed: u64) -> Duration {
        let delay = self.delay_after(failed_deliveries);
        let most = f64::from(self.jitter_percent.min(100)) / 100.0;
        if most == 0.0 {
            return delay;
        }
        let spread = most * (2.0 * fraction_of(seed, failed_deliveries) - 1.0);
        let delay =
            Duration::try_from_secs_f64(delay.as_secs_f64() * (1.0 + spread)).unwrap_or(Duration::MAX);
        let maximum = self.maximum_delay.unwrap_or(Duration::MAX);
        // What would be beyond the maximum is as much below it: cut off there, half of them would come together.
        delay.min(maximum.saturating_sub(delay.saturating_sub(maximum)))
    }

    /// The moment of the next delivery of a message that failed at `now`; see [`RedeliveryPolicy::delay_of`].
    #[must_use]
    pub fn next_delivery(&self, now: Timestamp, failed_deliveries: u32, seed: u64) -> Timestamp {
        now.saturating_add(self.delay_of(failed_deliveries, seed))
    }
}

/// A number from 0 up to 1 that depends on both numbers and on nothing else, by the `SplitMix64` generator.
fn fraction_of(seed: u64, count: u32) -> f64 {
    let mut mixed = seed.wrapping_add(u64::from(count).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    // The 32 upper bits, which a double has exactly.
    f64::from(((mixed ^ (mixed >> 31)) >> 32) as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_is_capped_and_never_overflows() {
        let policy = RedeliveryPolicy {
            initial_delay: Duration::from_millis(100),
            back_off: Some(10.0),
            maximum_delay: Some(Duration::from_secs(1)),
            maximum_redeliveries: Some(40),
            ..RedeliveryPolicy::default()
        };
        let delays: Vec<_> = (1..=4).map(|count| policy.delay_after(count).as_millis()).collect();
        assert_eq!(delays, [100, 1_000, 1_000, 1_000]);
        assert_eq!(policy.delay_after(u32::MAX), Duration::from_secs(1));
        let unbounded = RedeliveryPolicy { maximum_delay: None, ..policy };
        assert_eq!(unbounded.next_delivery(Timestamp(5), u32::MAX, 7), Timestamp(u64::MAX));
    }

    #[test]
    fn no_delay_stays_no_delay_however_often_it_is_backed_off() {
        let policy = RedeliveryPolicy {
            initial_delay: Duration::ZERO,
            back_off: Some(10.0),
            ..RedeliveryPolicy::default()
        };
        assert_eq!(policy.delay_after(1_000), Duration::ZERO);
    }

    #[test]
    fn six_redeliveries_are_seven_deliveries() {
        let policy = RedeliveryPolicy::default();
        assert!(!policy.is_exhausted(6));
        assert!(policy.is_exhausted(7));
        assert!(!RedeliveryPolicy { maximum_redeliveries: None, ..policy }.is_exhausted(u32::MAX));
    }

    fn with_jitter() -> RedeliveryPolicy {
        RedeliveryPolicy {
            initial_delay: Duration::from_secs(1),
            back_off: Some(2.0),
            maximum_delay: Some(Duration::from_secs(8)),
            jitter_percent: 15,
            ..RedeliveryPolicy::default()
        }
    }

    #[test]
    fn jitter_spreads_messages_that_failed_together_and_keeps_within_its_percents() {
        let policy = with_jitter();
        let delays: Vec<_> = (0..1_000).map(|seed| policy.delay_of(2, seed).as_secs_f64()).collect();
        assert!(delays.iter().all(|delay| (1.7..=2.3).contains(delay)), "{delays:?}");
        // On both sides, over the whole width.
        for (from, to) in [(1.7, 1.8), (1.9, 2.0), (2.0, 2.1), (2.2, 2.3)] {
            let count = delays.iter().filter(|delay| (from..to).contains(*delay)).count();
            assert!((100..240).contains(&count), "{count} from {from} to {to}");
        }
    }

    #[test]
    fn jitter_is_a_pure_function_of_the_message_and_its_count() {
        let policy = with_jitter();
        for seed in 0..100 {
            assert_eq!(policy.delay_of(3, seed), policy.delay_of(3, seed));
            assert_ne!(policy.delay_of(3, seed), policy.delay_of(3, seed + 1), "{seed}");
        }
    }

    #[test]
    fn jitter_is_never_negative_nor_beyond_the_maximum_nor_all_at_it() {
        let policy = RedeliveryPolicy { jitter_percent: u8::MAX, ..with_jitter() };
        let delays: Vec<_> = (0..1_000).map(|seed| policy.delay_of(9, seed)).collect();
        assert!(delays.iter().all(|delay| *delay <= Duration::from_secs(8)), "{delays:?}");
        let at_the_maximum = delays.iter().filter(|delay| **delay == Duration::from_secs(8)).count();
        assert!(at_the_maximum < 10, "{at_the_maximum}");
        let unbounded = RedeliveryPolicy { maximum_delay: None, ..policy.clone() };
        assert!(unbounded.delay_of(u32::MAX, 1) > Duration::from_secs(u64::from(u32::MAX)));
        let none = RedeliveryPolicy { initial_delay: Duration::ZERO, ..policy };
        assert_eq!(none.delay_of(5, 1), Duration::ZERO, "no delay stays none");
    }
}

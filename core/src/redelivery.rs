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
            non_blocking: false,
        }
    }
}

/// What one subscription wants otherwise than its broker's policy says; `None` leaves it as the broker has it.
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

    /// The delay after `failed_deliveries` (at least 1), a pure function of the message's own count so that a row of
    /// poison messages never makes one wait for the others (ActiveMQ's AMQ-8617).
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

    /// The moment of the next delivery of a message that failed at `now`.
    #[must_use]
    pub fn next_delivery(&self, now: Timestamp, failed_deliveries: u32) -> Timestamp {
        now.saturating_add(self.delay_after(failed_deliveries))
    }
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
        assert_eq!(unbounded.next_delivery(Timestamp(5), u32::MAX), Timestamp(u64::MAX));
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
}

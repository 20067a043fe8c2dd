//! When the provider is told of a consumer's deliveries, and how much may be under way to it.

use std::time::Duration;

use super::AcknowledgeMode;
use crate::client::factory::OptimizeAcknowledge;
use crate::provider::Credit;

/// What decides when the provider is told of a consumer's deliveries. The prefetch is not in it, as that may change.
#[derive(Clone, Copy, Debug)]
pub(in crate::client) struct Timing {
    pub(super) mode: AcknowledgeMode,
    pub(super) is_topic: bool,
    /// Whether what was handed over widens the window by a half at most in CLIENT and INDIVIDUAL.
    pub(super) is_bounded: bool,
    pub(super) optimize: Option<OptimizeAcknowledge>,
}

/// How acknowledgements are put off, so that one range says them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lazily {
    /// The provider is told when there are so many.
    pub(super) after: u64,
    /// It is told at the next one when it was last told so long ago.
    pub(super) timeout: Option<Duration>,
    /// It is told when nothing more waits for the consumer.
    pub(super) until_idle: bool,
}

impl Timing {
    /// Of a browser, which has nothing to say.
    pub(super) fn of_browser() -> Self {
        Self { mode: AcknowledgeMode::Auto, is_topic: false, is_bounded: true, optimize: None }
    }

    pub(super) fn credit(self, prefetch: u32) -> Credit {
        if prefetch == 0 {
            return Credit::Explicit;
        }
        Credit::Window { prefetch, extension: self.extension(prefetch) }
    }

    /// How many messages that were handed over and are not settled may widen the window; `None` for no bound.
    pub(super) fn extension(self, prefetch: u32) -> Option<u32> {
        match self.mode {
            // What is put off is told of before it could fill the window, so nothing has to be made room for.
            AcknowledgeMode::Auto | AcknowledgeMode::DupsOk => Some(0),
            AcknowledgeMode::Client | AcknowledgeMode::Individual => {
                self.is_bounded.then(|| prefetch.div_ceil(2))
            }
            // A transaction larger than the window must not wait for itself.
            AcknowledgeMode::Transacted => None,
        }
    }

    /// After how many messages the provider is told that they were handed over; `None` where that would not widen any window.
    pub(super) fn report_after(self, prefetch: u32) -> Option<u64> {
        match self.mode {
            AcknowledgeMode::Auto | AcknowledgeMode::DupsOk => None,
            AcknowledgeMode::Client | AcknowledgeMode::Individual | AcknowledgeMode::Transacted => {
                (prefetch > 0).then(|| u64::from(prefetch.div_ceil(2)))
            }
        }
    }

    /// How acknowledgements are put off, if they are. A consumer that pulls has nothing to put off: each of its messages is
    /// asked for by itself.
    pub(super) fn lazily(self, prefetch: u32) -> Option<Lazily> {
        if prefetch == 0 {
            return None;
        }
        match (self.mode, self.optimize) {
            (AcknowledgeMode::DupsOk, _) if self.is_topic => {
                let after = u64::from(prefetch.div_ceil(2));
                Some(Lazily { after, timeout: None, until_idle: true })
            }
            (AcknowledgeMode::Auto | AcknowledgeMode::DupsOk, Some(OptimizeAcknowledge { timeout, .. })) => {
                let after = (u64::from(prefetch) * 65).div_ceil(100);
                Some(Lazily { after, timeout, until_idle: false })
            }
            _ => None,
        }
    }

    /// How often a timer tells of what was put off; `None` where there is none.
    pub(super) fn interval(self, prefetch: u32) -> Option<Duration> {
        let lazily = self.lazily(prefetch).filter(|lazily| !lazily.until_idle);
        lazily.and(self.optimize).and_then(|optimize| optimize.interval)
    }
}

#[cfg(test)]
mod tests {
    use AcknowledgeMode::{Auto, Client, DupsOk, Individual, Transacted};

    use super::*;

    const OPTIMIZED: Option<OptimizeAcknowledge> =
        Some(OptimizeAcknowledge { timeout: Some(Duration::from_millis(300)), interval: None });

    fn timing(mode: AcknowledgeMode, is_topic: bool, optimize: Option<OptimizeAcknowledge>) -> Timing {
        Timing { mode, is_topic, is_bounded: true, optimize }
    }

    #[test]
    fn halves_are_rounded_up_and_at_least_one() {
        for (prefetch, half) in [(1, 1), (2, 1), (3, 2), (5, 3), (10, 5), (32_767, 16_384)] {
            for mode in [Client, Individual] {
                let timing = timing(mode, false, None);
                let extension = Some(u32::try_from(half).unwrap());
                assert_eq!(timing.credit(prefetch), Credit::Window { prefetch, extension });
                assert_eq!(timing.report_after(prefetch), Some(half));
            }
            assert_eq!(timing(Transacted, false, None).report_after(prefetch), Some(half));
            assert_eq!(timing(DupsOk, true, None).lazily(prefetch).unwrap().after, half);
        }
    }

    #[test]
    fn what_is_put_off_never_fills_a_window() {
        for prefetch in (1..=100).chain([32_767, u32::MAX]) {
            for timing in [timing(Auto, false, OPTIMIZED), timing(DupsOk, true, None)] {
                let after = timing.lazily(prefetch).unwrap().after;
                assert!((1..=u64::from(prefetch)).contains(&after), "{after} of {prefetch}");
            }
        }
    }

    #[test]
    fn acknowledgements_are_put_off_only_where_that_was_asked_for() {
        for (mode, is_topic, optimize, is_lazy) in [
            (Auto, false, None, false),
            (Auto, true, None, false),
            (Auto, false, OPTIMIZED, true),
            (Auto, true, OPTIMIZED, true),
            (DupsOk, false, None, false),
            (DupsOk, false, OPTIMIZED, true),
            (DupsOk, true, None, true),
            (Client, true, OPTIMIZED, false),
            (Individual, true, OPTIMIZED, false),
            (Transacted, true, OPTIMIZED, false),
        ] {
            let timing = timing(mode, is_topic, optimize);
            assert_eq!(timing.lazily(10).is_some(), is_lazy, "{timing:?}");
            assert_eq!(timing.lazily(0), None, "{timing:?}: a pull puts nothing off");
        }
    }
}

//! A message that the peer has sent and takes for not settled.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use corriere_core::provider::{Cause, CauseKind};
use corriere_core::{Message, RedeliveryPolicy};
use tokio::time::Instant;

use crate::codec::structures::MessageId;

/// A moment beyond all that can be counted is as good as this, which is never.
const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

#[derive(Debug)]
pub(super) struct Held {
    pub(super) id: MessageId,
    pub(super) message: Arc<Message>,
    pub(super) failed: u32,
    conversion_failed: bool,
    /// When it may be delivered again.
    pub(super) not_before: Option<Instant>,
    /// The number of its last delivery.
    pub(super) number: u64,
    pub(super) was_handed_over: bool,
}

/// What one failure means.
pub(super) enum Failed {
    Counted,
    NotCounted,
    TooOften,
}

impl Held {
    pub(super) fn new(id: MessageId, message: Message, failed: u32) -> Self {
        Self {
            id,
            message: Arc::new(message),
            failed,
            conversion_failed: false,
            not_before: None,
            number: 0,
            was_handed_over: false,
        }
    }

    /// Takes note of a failed delivery, by the rules that the broker has for it.
    pub(super) fn fail(
        &mut self,
        policy: &RedeliveryPolicy,
        delay: Option<Duration>,
        cause: &Cause,
        now: Instant,
    ) -> Failed {
        let is_counted = match cause.kind {
            CauseKind::Failure => true,
            CauseKind::Conversion => std::mem::replace(&mut self.conversion_failed, true),
            CauseKind::Resource => false,
        };
        self.failed = self.failed.saturating_add(u32::from(is_counted));
        let seed = seed_of(&self.id);
        let delay = match cause.kind {
            CauseKind::Conversion if !is_counted => None,
            CauseKind::Failure | CauseKind::Conversion => {
                Some(delay.unwrap_or_else(|| policy.delay_of(self.failed, seed)))
            }
            CauseKind::Resource => Some(delay.unwrap_or_else(|| policy.delay_of(1, seed))),
        };
        self.not_before = delay
            .filter(|delay| !delay.is_zero())
            .map(|delay| now.checked_add(delay).unwrap_or_else(|| now + NEVER));
        match is_counted {
            true if policy.is_exhausted(self.failed) => Failed::TooOften,
            true => Failed::Counted,
            false => Failed::NotCounted,
        }
    }
}

/// By what a message's delays are spread: its name, so that they are the same whoever asks.
fn seed_of(id: &MessageId) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.to_string().hash(&mut hasher);
    hasher.finish()
}

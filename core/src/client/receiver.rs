//! Where a consumer's messages come from: its buffer, and behind that the broker.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use super::buffer::{Buffer, End, lock};
use super::session::SessionInner;
use super::{Delivery, Session};
use crate::id::SubscriptionId;
use crate::provider::Command;
use crate::time::Timestamp;

/// Where a consumer's messages come from. It keeps no session open.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    pub(super) subscription: SubscriptionId,
    pub(super) buffer: Arc<Buffer>,
    /// Present when messages come only as they are asked for (prefetch 0).
    pull: Option<Arc<Mutex<PullState>>>,
}

/// How long a receive waits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    No,
    Until(Timestamp),
    Forever,
}

impl Wait {
    pub(super) fn up_to(timeout: Duration, now: Timestamp) -> Self {
        if timeout.is_zero() { Self::No } else { Self::Until(now.saturating_add(timeout)) }
    }
}

/// What a consumer's buffer gives.
pub(super) struct Next {
    pub(super) delivery: Option<Delivery>,
    /// Whether something before it had expired, and is gone now.
    passed_expired: bool,
}

impl Receiver {
    pub(super) fn new(subscription: SubscriptionId, buffer: Arc<Buffer>, pulls: bool) -> Self {
        Self { subscription, buffer, pull: pulls.then(Arc::default) }
    }

    /// Whether messages come only as they are asked for.
    pub(super) fn pulls(&self) -> bool {
        self.pull.is_some()
    }

    pub(super) async fn next(
        &self,
        session: &Arc<SessionInner>,
        settles: bool,
        wait: Wait,
    ) -> Result<Option<Delivery>, End> {
        let _pull = self.pull.as_deref().map(|pull| Pull::begin(session, self.subscription, pull));
        let clock = session.connection().clock();
        let warning = warn_while_unstarted(Arc::downgrade(session));
        tokio::pin!(warning);
        loop {
            let changed = self.buffer.changed().notified();
            tokio::pin!(changed);
            // From here on no change is missed, so what the buffer says now stays true until `changed` completes.
            changed.as_mut().enable();
            if let Some(delivery) = self.try_next(session, settles)?.delivery {
                return Ok(Some(delivery));
            }
            let deadline = match wait {
                Wait::Forever => None,
                Wait::Until(deadline) if clock.now() < deadline => Some(deadline),
                Wait::Until(_) | Wait::No => break,
            };
            self.grant(session);
            let overdue = async {
                match deadline {
                    Some(deadline) => clock.sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = changed => {}
                () = overdue => break,
                _ = &mut warning => {}
            }
        }
        if !session.connection().sink().is_started() {
            return Ok(None);
        }
        loop {
            self.fetch(session).await?;
            let next = self.try_next(session, settles)?;
            // Behind what has expired on its way there may be more.
            if next.delivery.is_some() || !next.passed_expired {
                return Ok(next.delivery);
            }
        }
    }

    /// What the broker can send at this moment is in the buffer when this is done.
    async fn fetch(&self, session: &SessionInner) -> Result<(), End> {
        self.grant(session);
        let grants = self.pull.as_deref().map(|pull| lock(pull).grants);
        let drain = Command::Drain { subscription: self.subscription };
        if let Err(error) = session.connection().submit(drain).await {
            // Of a subscription that was closed meanwhile the provider knows nothing any more.
            return Err(self.buffer.ended().unwrap_or(End::Failed(error)));
        }
        if let (Some(pull), Some(grants)) = (self.pull.as_deref(), grants) {
            lock(pull).drained(grants, self.buffer.len());
        }
        Ok(())
    }

    /// The next delivery if one is there; not settled, unless `settles`.
    pub(super) fn try_next(&self, session: &Arc<SessionInner>, settles: bool) -> Result<Next, End> {
        if !session.connection().sink().is_started() {
            return Ok(Next { delivery: None, passed_expired: false });
        }
        let (dispatch, expired) = session.hand_over(self.subscription, &self.buffer, settles)?;
        if let Some(pull) = &self.pull {
            lock(pull).taken(expired + usize::from(dispatch.is_some()));
        }
        let delivery = dispatch.map(|dispatch| Delivery::new(Session::of(session), dispatch));
        Ok(Next { delivery, passed_expired: expired > 0 })
    }

    /// Sees to it that every receive that waits can be sent a message.
    fn grant(&self, session: &SessionInner) {
        if let Some(pull) = self.pull.as_deref().filter(|_| session.connection().sink().is_started()) {
            lock(pull).grant_missing(session, self.subscription);
        }
    }

    /// Completes when a message can be taken, with false when none will come any more. It keeps no session open.
    pub(super) async fn backlog(&self, session: &Weak<SessionInner>) -> bool {
        let warning = warn_while_unstarted(session.clone());
        tokio::pin!(warning);
        loop {
            let changed = self.buffer.changed().notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let Some(is_started) = session.upgrade().map(|session| session.connection().sink().is_started())
            else {
                return false;
            };
            match self.buffer.ended() {
                Some(End::Closed) => return false,
                Some(End::Failed(error)) => {
                    tracing::error!(%error, "a message listener gets no more messages");
                    return false;
                }
                None if is_started && self.buffer.len() > 0 => return true,
                None => {
                    if let Some(session) = session.upgrade() {
                        session.begin_waiting(self.subscription);
                    }
                }
            }
            tokio::select! {
                () = changed => {}
                _ = &mut warning => {}
            }
        }
    }
}

/// Completes never; warns after a while when the connection is not started. It keeps no session open.
async fn warn_while_unstarted(session: Weak<SessionInner>) -> Infallible {
    let unstarted = |session: &Arc<SessionInner>| !session.connection().sink().is_started();
    let delay =
        session.upgrade().filter(unstarted).map(|session| session.connection().factory().unstarted_warning());
    if let Some(delay) = delay {
        tokio::time::sleep(delay).await;
        if let Some(session) = session.upgrade().filter(unstarted) {
            session.connection().warn_unstarted(delay);
        }
    }
    std::future::pending().await
}

/// The explicit credit of a pulling consumer.
#[derive(Debug, Default)]
struct PullState {
    /// Receives that wait.
    waiting: usize,
    /// Granted, and not used by a message that was taken from the buffer. Never more than there is, so that a receive
    /// which counts on it is served.
    granted: usize,
    /// Whether there may be more credit than `granted`: a message that was on its way when a drain was submitted uses
    /// up credit of before the drain and is counted as if it used later credit.
    is_uncertain: bool,
    /// How often something was granted.
    grants: u64,
}

impl PullState {
    fn grant_missing(&mut self, session: &SessionInner, subscription: SubscriptionId) {
        let missing = self.waiting.saturating_sub(self.granted);
        if let Ok(credit @ 1..) = u32::try_from(missing) {
            self.granted += missing;
            self.grants += 1;
            drop(session.connection().submit(Command::Grant { subscription, credit }));
        }
    }

    fn taken(&mut self, messages: usize) {
        self.granted = self.granted.saturating_sub(messages);
    }

    /// Takes note of a drain that was submitted after `grants` and is confirmed now.
    fn drained(&mut self, grants: u64, buffered: usize) {
        self.granted = buffered;
        self.is_uncertain = self.grants != grants;
    }
}

/// A receive that waits on a pulling consumer. Dropped, it takes its credit back; a message that is on its way all the
/// same waits in the buffer for the next receive.
struct Pull<'a> {
    session: &'a SessionInner,
    subscription: SubscriptionId,
    state: &'a Mutex<PullState>,
}

impl<'a> Pull<'a> {
    fn begin(session: &'a SessionInner, subscription: SubscriptionId, state: &'a Mutex<PullState>) -> Self {
        lock(state).waiting += 1;
        Self { session, subscription, state }
    }
}

impl Drop for Pull<'_> {
    fn drop(&mut self) {
        let mut pull = lock(self.state);
        pull.waiting -= 1;
        if pull.granted > pull.waiting || (pull.waiting == 0 && pull.is_uncertain) {
            // A drain takes all credit, also that of the others who wait.
            drop(self.session.connection().submit(Command::Drain { subscription: self.subscription }));
            pull.granted = 0;
            pull.is_uncertain = true;
        }
        pull.grant_missing(self.session, self.subscription);
    }
}

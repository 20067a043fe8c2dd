//! Browsers: what a queue had when one was opened, in its order, as far as it is there when its turn comes.

use corriere_broker::machine::{ConnectionKey, Effects, Ticket};
use corriere_core::provider::Dispatch;
use corriere_core::{Destination, SubscriptionId};

use super::effects::check_dead_letter;
use super::entry::{Entry, Place, SubscriptionKey, id_of};
use super::session::Session;
use super::{Answer, Judgement, Model, Violation, violation};

/// A browser.
#[derive(Clone, Debug)]
pub struct Browser {
    /// Which one.
    pub key: SubscriptionKey,
    /// Its session.
    pub session: Session,
    queue: Destination,
    /// What became visible later than this is not shown.
    end: u64,
    /// The position that was shown last.
    shown: Option<(u8, u64)>,
    granted: u64,
    draining: u64,
    delivered: u64,
    /// Whether it was opened in this step.
    is_new: bool,
    /// Whether it was told that this was all.
    has_ended: bool,
}

impl Browser {
    /// Whether it may be shown this, now or later.
    fn is_to_be_shown(&self, entry: &Entry) -> bool {
        entry.place == Place::Queue(self.queue.clone())
            && entry.position.1 <= self.end
            && self.shown.is_none_or(|shown| shown < entry.position)
            && !entry.is_aside
    }
}

/// What may have been there when browsers were served in a step, and what was for certain.
struct There<'a> {
    certain: Vec<&'a Entry>,
    possible: Vec<&'a Entry>,
}

impl Model {
    /// The browsers that are open.
    #[must_use]
    pub fn browsers(&self) -> &[Browser] {
        &self.browsers
    }

    /// How many messages browsers were shown, how many of these were not to be had by a consumer then, and how many browsers
    /// came to their end.
    #[must_use]
    pub fn shown(&self) -> [u64; 3] {
        self.shown
    }

    pub(super) fn open_browser(
        &mut self,
        session: Session,
        subscription: SubscriptionId,
        queue: &Destination,
    ) -> Answer {
        if queue.is_topic() || !self.may_consume(session.connection, queue) {
            return Answer::Invalid;
        }
        if !self.sessions.contains(&session) {
            return Answer::Unknown;
        }
        self.browsers.push(Browser {
            key: (session.connection, subscription),
            session,
            queue: queue.clone(),
            end: self.positions,
            shown: None,
            granted: 0,
            draining: 0,
            delivered: 0,
            is_new: true,
            has_ended: false,
        });
        Answer::Done
    }

    pub(super) fn browser_mut(
        &mut self,
        connection: ConnectionKey,
        subscription: SubscriptionId,
    ) -> Option<&mut Browser> {
        self.browsers.iter_mut().find(|browser| browser.key == (connection, subscription))
    }

    pub(super) fn grant_to_browser(
        &mut self,
        connection: ConnectionKey,
        subscription: SubscriptionId,
        credit: u32,
    ) -> Option<Answer> {
        self.browser_mut(connection, subscription)?.granted += u64::from(credit);
        Some(Answer::Done)
    }

    /// A drain is answered once all has been shown that there is credit for.
    pub(super) fn drain_browser(
        &mut self,
        connection: ConnectionKey,
        subscription: SubscriptionId,
        ticket: Ticket,
    ) -> bool {
        let Some(browser) = self.browser_mut(connection, subscription) else { return false };
        browser.draining = browser.granted;
        self.browser_drains.push((ticket, (connection, subscription)));
        self.tickets.owe_when_read(connection, ticket);
        true
    }

    /// A drain is answered: the credit is gone.
    pub(super) fn browser_is_drained(&mut self, ticket: Ticket) {
        let Some(index) = self.browser_drains.iter().position(|(drain, _)| *drain == ticket) else { return };
        let (_, (connection, subscription)) = self.browser_drains.remove(index);
        if let Some(browser) = self.browser_mut(connection, subscription) {
            browser.granted -= std::mem::take(&mut browser.draining);
        }
    }

    /// Judges what browsers were shown. `before` is what was there when the input had been taken; by the end of the step some
    /// of it may be gone that was still there when they were served.
    pub(super) fn check_browsers(&mut self, effects: &Effects, before: &[Entry]) -> Judgement {
        let mut browsers = std::mem::take(&mut self.browsers);
        let mut judgement = Ok(());
        for browser in &mut browsers {
            let shown = effects.deliveries.iter().filter(|(connection, _)| *connection == browser.key.0);
            let shown = shown.flat_map(|(_, batch)| batch);
            let shown: Vec<_> = shown.filter(|dispatch| dispatch.subscription == browser.key.1).collect();
            let ends = effects.browse_ends.iter().filter(|key| **key == browser.key).count();
            judgement = judgement.and_then(|()| self.judge_browser(browser, &shown, ends, before));
        }
        self.browsers = browsers;
        judgement
    }

    fn judge_browser(
        &mut self,
        browser: &mut Browser,
        shown: &[&Dispatch],
        ends: usize,
        before: &[Entry],
    ) -> Judgement {
        if browser.has_ended && (ends > 0 || !shown.is_empty()) {
            violation!("{browser:?} goes on after its end: {shown:?}");
        }
        for dispatch in shown {
            let position = self.judge_shown(browser, dispatch, before)?;
            browser.shown = Some(position);
            browser.granted -= 1;
            browser.draining = browser.draining.saturating_sub(1);
            browser.delivered += 1;
            self.shown[0] += 1;
        }
        let There { certain, possible } = self.there(browser, before);
        let is_new = std::mem::take(&mut browser.is_new);
        if ends > 0 {
            if let Some(entry) = certain.first() {
                violation!("{browser:?} is told that it is at its end, and {} is still there", entry.id());
            }
            browser.has_ended = true;
            self.shown[2] += 1;
        } else if !browser.has_ended && possible.is_empty() && (is_new || !shown.is_empty()) {
            violation!("{browser:?} has been shown all, and is not told");
        } else if !browser.has_ended && browser.granted > 0 && self.loading.is_empty() {
            violation!("{browser:?} has credit, and is neither shown more nor told that this was all");
        }
        Ok(())
    }

    fn judge_shown(
        &mut self,
        browser: &Browser,
        dispatch: &Dispatch,
        before: &[Entry],
    ) -> Result<(u8, u64), Violation> {
        let name = format!("{} shown to {:?}", id_of(&dispatch.message), browser.key);
        if browser.granted == 0 {
            violation!("{name} is beyond its credit");
        }
        if dispatch.number != browser.delivered + 1 || dispatch.epoch != 0 || dispatch.mark.is_some() {
            violation!("{name} is dispatched as {dispatch:?} after {}", browser.delivered);
        }
        let There { certain, possible } = self.there(browser, before);
        let is_it = |entry: &&&Entry| entry.id() == id_of(&dispatch.message);
        let Some(entry) = possible.iter().find(is_it) else {
            violation!("{name} is not there, or is not to be shown");
        };
        if let Some(passed) = certain.first().filter(|passed| passed.position < entry.position) {
            violation!("{name} although {} is before it", passed.id());
        }
        if dispatch.delivery_count != entry.failed + 1 {
            violation!("{name} as delivery {}, expected {}", dispatch.delivery_count, entry.failed + 1);
        }
        match &entry.dead_letter {
            Some(letter) => check_dead_letter(&dispatch.message, letter)?,
            None if dispatch.message != entry.message => violation!("{name} was changed"),
            None => {}
        }
        let (position, is_to_be_had) = (entry.position, entry.is_lying() && !entry.is_delayed(self.now));
        self.shown[1] += u64::from(!is_to_be_had);
        Ok(position)
    }

    /// What a browser is still to be shown, in the order of positions.
    fn there<'a>(&'a self, browser: &Browser, before: &'a [Entry]) -> There<'a> {
        let wanted = |entry: &&Entry| browser.is_to_be_shown(entry);
        let is_among = |entries: &[Entry], entry: &Entry| {
            entries.iter().any(|other| {
                other.position == entry.position && other.place == entry.place && !other.is_aside
            })
        };
        let mut possible: Vec<_> = self.entries.iter().filter(wanted).collect();
        let gone = before.iter().filter(wanted).filter(|entry| !is_among(&self.entries, entry));
        let mut certain: Vec<_> = possible.iter().copied().filter(|entry| is_among(before, entry)).collect();
        possible.extend(gone);
        possible.sort_by_key(|entry| entry.position);
        certain.sort_by_key(|entry| entry.position);
        There { certain, possible }
    }
}

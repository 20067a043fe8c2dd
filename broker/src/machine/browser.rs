//! Browsers: consumers that are shown what is in a queue, and change nothing there.
//!
//! - A browser walks over the positions that the queue has when it is opened ([`Page`]). What is gone by its turn is left out,
//!   in flight and waiting messages are shown.
//! - A body that is with the store only is read back for the browser alone: it is not in the queue's memory afterwards. A
//!   bounded number is read ahead, never more than there is credit for. One that cannot be read is set aside, as when a
//!   consumer had wanted it, and left out.
//! - What it was shown is not in flight and has no slot. An acknowledgement of it means nothing and is confirmed, as clients
//!   of other makes acknowledge what their browsers got.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use corriere_core::provider::{Capability, Dispatch, ProviderError};
use corriere_core::{Destination, Message, SessionId, SubscriptionId};

use super::Machine;
use super::credit::ExplicitCredit;
use super::effects::ConnectionKey;
use super::queue::{Entry, Place, Position, QueueKey};
use super::sending::Target;
use super::snapshot::Page;
use super::subscription::SubscriptionKey;
use super::temporary::invalid;
use crate::store::{StoreError, StoredId};

/// How many messages of a browser are read back at once, and how many bytes of them, one of any size apart.
const MOST_AHEAD: usize = 16;
const BYTES_AHEAD: u64 = 1024 * 1024;

/// A browser, from its opening until it is closed.
#[derive(Debug)]
pub(super) struct Browser {
    session: SessionId,
    /// `None` once it has come to the end.
    look: Option<Look>,
    credit: ExplicitCredit,
    last_number: u64,
}

#[derive(Debug)]
struct Look {
    queue: QueueKey,
    page: Page,
    /// What is read back, before the page.
    ahead: VecDeque<Ahead>,
}

#[derive(Debug)]
struct Ahead {
    position: Position,
    stored: StoredId,
    size: u64,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Awaited,
    Here(Arc<Message>),
    Unreadable,
}

/// Messages that are read back for browsers, with who waits for each.
#[derive(Debug, Default)]
pub(super) struct Reading(BTreeMap<StoredId, (QueueKey, Position, Vec<SubscriptionKey>)>);

/// What a browser does next.
enum Next {
    Show(Arc<Message>, u32),
    ReadBack,
    End,
}

impl Browser {
    /// Whether it would be shown more at this moment if a body were here that is being read back.
    pub(super) fn waits_for_body(&self) -> bool {
        let is_reading = self.look.as_ref().is_some_and(|look| !look.ahead.is_empty());
        is_reading && self.credit.left() > 0 && !self.credit.is_drained()
    }

    pub(super) fn credit(&mut self) -> &mut ExplicitCredit {
        &mut self.credit
    }
}

impl Reading {
    pub(super) fn has(&self, stored: StoredId) -> bool {
        self.0.contains_key(&stored)
    }
}

impl Machine {
    /// Opens a browser.
    pub(super) fn open_browser(
        &mut self,
        connection: ConnectionKey,
        subscription: SubscriptionId,
        session: SessionId,
        destination: &Destination,
        has_selector: bool,
    ) -> Result<(), ProviderError> {
        let key = (connection, subscription);
        self.check_new_subscription(key)?;
        if has_selector {
            return Err(ProviderError::Unsupported(Capability::Selectors));
        }
        if destination.is_topic() {
            return Err(invalid(destination, "a topic has nothing to browse; only queues have"));
        }
        self.check_may_consume(connection, destination)?;
        self.note_subscription(connection, session, subscription)?;
        let look = match self.find_target(destination) {
            Some(Target::Queue(queue)) => self.queues.get(&queue).map(|state| Look {
                queue,
                page: state.page(),
                ahead: VecDeque::new(),
            }),
            _ => None,
        };
        if look.is_none() {
            self.effects.browse_ends.push(key);
        }
        self.browsers
            .insert(key, Browser { session, look, credit: ExplicitCredit::default(), last_number: 0 });
        self.serve_browser(key);
        Ok(())
    }

    /// Grants credit to a browser; false when it is none.
    pub(super) fn grant_to_browser(&mut self, key: SubscriptionKey, credit: u32) -> bool {
        let Some(browser) = self.browsers.get_mut(&key) else { return false };
        browser.credit.grant(credit);
        self.serve_browser(key);
        true
    }

    /// Closes a browser; false when it is none.
    pub(super) fn close_browser(&mut self, key: SubscriptionKey) -> bool {
        let Some(browser) = self.browsers.remove(&key) else { return false };
        self.forget_subscription(key, browser.session);
        true
    }

    /// Ends the browsers that its owner has of a temporary queue that is gone.
    pub(super) fn end_browsers_of(&mut self, owner: ConnectionKey, target: Target) {
        let of_owner = (owner, SubscriptionId(0))..=(owner, SubscriptionId(u64::MAX));
        let of_it =
            |browser: &Browser| browser.look.as_ref().is_some_and(|look| Target::Queue(look.queue) == target);
        let keys: Vec<_> = self
            .browsers
            .range(of_owner)
            .filter(|(_, browser)| of_it(browser))
            .map(|(key, _)| *key)
            .collect();
        for key in keys {
            self.serve_browser(key);
        }
    }

    /// Shows a browser what is there, as far as its credit and the bodies that are here reach.
    fn serve_browser(&mut self, key: SubscriptionKey) {
        while let Some(next) = self.next_of_browser(key) {
            match next {
                Next::Show(message, delivery_count) => self.show_to(key, message, delivery_count),
                Next::ReadBack => self.read_back_for(key),
                Next::End => {
                    if let Some(browser) = self.browsers.get_mut(&key) {
                        browser.look = None;
                    }
                    self.effects.browse_ends.push(key);
                }
            }
        }
    }

    fn next_of_browser(&mut self, key: SubscriptionKey) -> Option<Next> {
        let browser = self.browsers.get_mut(&key)?;
        let has_credit = browser.credit.left() > 0;
        let look = browser.look.as_mut()?;
        let Some(queue) = self.queues.get(&look.queue) else { return Some(Next::End) };
        while let Some(ahead) = look.ahead.front() {
            let entry = queue.find(ahead.position, ahead.stored);
            match (&ahead.body, entry) {
                (Body::Awaited, Some(_)) => return None,
                (Body::Here(_), Some(_)) if !has_credit => return None,
                (Body::Here(message), Some(entry)) => {
                    let shown = Next::Show(Arc::clone(message), next_delivery(entry));
                    look.ahead.pop_front();
                    return Some(shown);
                }
                (Body::Unreadable, _) | (_, None) => look.ahead.pop_front(),
            };
        }
        loop {
            let mut page = look.page;
            let Some((_, entry)) = queue.look(&mut page) else { return Some(Next::End) };
            if is_aside(entry) {
                look.page = page;
                continue;
            }
            if !has_credit {
                return None;
            }
            let Some(message) = entry.held.body() else { return Some(Next::ReadBack) };
            look.page = page;
            return Some(Next::Show(Arc::clone(message), next_delivery(entry)));
        }
    }

    fn show_to(&mut self, key: SubscriptionKey, message: Arc<Message>, delivery_count: u32) {
        let Some(browser) = self.browsers.get_mut(&key) else { return };
        browser.credit.use_one();
        browser.last_number += 1;
        let number = browser.last_number;
        let dispatch =
            Dispatch { subscription: key.1, number, epoch: 0, message, delivery_count, mark: None };
        self.put_out(key.0, dispatch);
    }

    /// Has the next bodies read back, up to one that is here.
    fn read_back_for(&mut self, key: SubscriptionKey) {
        let Some(browser) = self.browsers.get_mut(&key) else { return };
        let most = usize::try_from(browser.credit.left()).map_or(MOST_AHEAD, |left| left.min(MOST_AHEAD));
        let Some(look) = browser.look.as_mut() else { return };
        let Some(queue) = self.queues.get(&look.queue) else { return };
        let mut bytes: u64 = look.ahead.iter().map(|ahead| ahead.size).sum();
        let mut wanted = Vec::new();
        while look.ahead.len() < most {
            let mut page = look.page;
            let Some((position, entry)) = queue.look(&mut page) else { break };
            if !is_aside(entry) {
                let (stored, size) = (entry.held.id, entry.held.size);
                bytes = bytes.saturating_add(size);
                if entry.held.body().is_some() || (!look.ahead.is_empty() && bytes > BYTES_AHEAD) {
                    break;
                }
                look.ahead.push_back(Ahead { position, stored, size, body: Body::Awaited });
                wanted.push((stored, position));
            }
            look.page = page;
        }
        let queue_key = look.queue;
        for (stored, position) in wanted {
            self.ask_for(stored);
            let reading = self.bodies.reading.0.entry(stored);
            reading.or_insert_with(|| (queue_key, position, Vec::new())).2.push(key);
        }
    }

    /// A message has come from the store, or cannot come: gives it to the browsers that wait for it, and says which these are.
    /// What cannot be read is set aside, unless the queue wanted it as well and does that.
    pub(super) fn loaded_for_browsers(
        &mut self,
        stored: StoredId,
        outcome: &Result<Arc<Message>, StoreError>,
        is_wanted_by_queue: bool,
    ) -> Vec<SubscriptionKey> {
        let Some((queue_key, position, keys)) = self.bodies.reading.0.remove(&stored) else {
            return Vec::new();
        };
        for key in &keys {
            let look = self.browsers.get_mut(key).and_then(|browser| browser.look.as_mut());
            let ahead = look.and_then(|look| look.ahead.iter_mut().find(|ahead| ahead.stored == stored));
            if let Some(ahead) = ahead {
                ahead.body = outcome.as_ref().map_or(Body::Unreadable, |body| Body::Here(Arc::clone(body)));
            }
        }
        let entry = self.queues.get(&queue_key).and_then(|queue| queue.find(position, stored));
        if let Err(error) = outcome
            && !is_wanted_by_queue
            && entry.is_some_and(|entry| entry.held.body().is_none() && entry.place() != Place::Aside)
        {
            self.cannot_be_read(queue_key, position, error.clone());
        }
        keys
    }

    /// Goes on with browsers that bodies have come for.
    pub(super) fn serve_browsers(&mut self, keys: BTreeSet<SubscriptionKey>) {
        for key in keys {
            self.serve_browser(key);
        }
    }
}

fn is_aside(entry: &Entry) -> bool {
    entry.place() == Place::Aside
}

fn next_delivery(entry: &Entry) -> u32 {
    entry.failed_deliveries.saturating_add(1)
}

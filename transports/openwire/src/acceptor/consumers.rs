//! Consumers and browsers: opened, pulling, closed.

use std::fmt::Display;
use std::time::Duration;

use corriere_core::provider::{Ack, AckKind, Cause, Command, Credit, ProviderError, Subscribe};
use corriere_core::{Destination, RedeliveryOverrides, SessionId, SubscriptionId};
use tokio::time::Instant;

use super::advisories::Wanted;
use super::confirmations::{Answer, Then};
use super::connection::Connection;
use super::deliveries::Consumer;
use super::durable::name_of;
use super::exceptions::Refusal;
use super::pulls::{Due, Request};
use super::sessions::UNKNOWN;
use super::windows::{self, prefetch};
use crate::codec::structures::{self as wire, JavaException};
use crate::redelivery::ConsumerTerms;

/// The command that opens a consumer, by its name.
const CONSUMER_INFO: &str = "ConsumerInfo";

impl Connection {
    pub(super) fn open_consumer(&mut self, info: wire::ConsumerInfo, answer: Answer) -> Result<(), Refusal> {
        let (id, destination) = (info.consumer_id.clone(), info.destination.clone());
        let subscription_name = info.subscription_name.clone();
        let opened = self.try_open_consumer(info, answer);
        if let Err(refusal) = &opened {
            let none: &dyn Display = &"none";
            let destination = destination.as_ref().map_or(none, |destination| destination);
            self.say_consumer_refused(&id, destination, subscription_name.as_deref(), refusal);
        }
        opened
    }

    /// Says in the log that a consumer was refused, once for each connection, as some clients try again and again.
    pub(super) fn say_consumer_refused(
        &mut self,
        consumer: &wire::ConsumerId,
        destination: &dyn Display,
        subscription_name: Option<&str>,
        refusal: &Refusal,
    ) {
        let is_first = self.said_refused.insert(CONSUMER_INFO);
        let (peer, client_id) = (self.peer, self.client_id());
        if is_first {
            tracing::warn!(
                %peer, client_id, %consumer, %destination, subscription_name, %refusal,
                "a consumer is refused; later ones on this connection are logged for debugging only"
            );
        } else {
            tracing::debug!(
                %peer, client_id, %consumer, %destination, subscription_name, %refusal,
                "a consumer is refused"
            );
        }
    }

    fn try_open_consumer(&mut self, info: wire::ConsumerInfo, answer: Answer) -> Result<(), Refusal> {
        let id = &info.consumer_id;
        self.check_owner(&id.connection_id, "the consumer")?;
        let key = (id.session_id, id.value);
        let state = self.deliveries.lock();
        // One that the provider has ended makes place for another.
        let known = self.consumers.get(&key).copied().filter(|number| state.consumers.contains_key(number));
        let is_there = known.is_some() || state.watchers.has(id);
        drop(state);
        if let Some(known) = known.filter(|_| self.is_corriere && !info.browser) {
            return self.change_window(known, &info, answer);
        }
        if is_there {
            self.done(answer);
            return Ok(());
        }
        let session = self.session(id.session_id)?;
        let Some(destination) = &info.destination else {
            return Err(Refusal::new(JavaException::InvalidDestination, "the consumer names no destination"));
        };
        if let Some(wanted) = Wanted::of(destination) {
            return self.watch(info.consumer_id, wanted, answer);
        }
        check_offered(&info)?;
        if let Some(name) = name_of(&info) {
            self.check_durable(name)?;
        }
        let destination = destination.to_core()?;
        let opened = destination.clone();
        let subscription = SubscriptionId(self.next_number());
        let command = if info.browser {
            Command::Browse { subscription, session, destination, selector: None }
        } else {
            let subscribe = self.subscribe(&info, subscription, session, destination)?;
            Command::OpenSubscription(Box::new(subscribe))
        };
        self.consumers.insert(key, subscription);
        let consumer = Consumer::new(&info, self.is_corriere);
        self.deliveries.lock().consumers.insert(subscription, consumer);
        let provider = self.provider()?;
        let receipt = provider.submit(command);
        if info.browser {
            let credit = prefetch(info.prefetch_size).or((!self.is_corriere).then_some(1));
            if let Some(credit) = credit {
                provider.tell(Command::Grant { subscription, credit });
            }
        }
        let opened = Then::Opened {
            subscription,
            consumer: info.consumer_id,
            destination: opened,
            subscription_name: info.subscription_name,
            answer,
        };
        self.when_opened(receipt, opened);
        Ok(())
    }

    fn subscribe(
        &self,
        info: &wire::ConsumerInfo,
        subscription: SubscriptionId,
        session: SessionId,
        destination: Destination,
    ) -> Result<Subscribe, Refusal> {
        let terms = if self.is_corriere {
            ConsumerTerms::from_structure(info.additional_predicate.as_ref())?
        } else {
            ConsumerTerms {
                extension: None,
                is_default_credit: windows::is_default(info),
                redelivery: redelivered_by_the_client(),
            }
        };
        let credit = prefetch(info.prefetch_size)
            .map_or(Credit::Explicit, |prefetch| Credit::Window { prefetch, extension: terms.extension });
        Ok(Subscribe {
            subscription,
            session,
            destination,
            credit,
            selector: None,
            no_local: info.no_local,
            is_default_credit: terms.is_default_credit,
            durable_name: name_of(info).cloned(),
            redelivery: Some(terms.redelivery),
        })
    }

    /// A consumer is there, or is not: its deliveries follow the answer.
    pub(super) fn opened(
        &mut self,
        subscription: SubscriptionId,
        consumer: &wire::ConsumerId,
        answer: Answer,
        outcome: Result<(), ProviderError>,
    ) {
        let is_there = outcome.is_ok();
        self.settle(answer, outcome);
        if is_there {
            self.deliveries.open(subscription);
        } else {
            // By now the peer may have opened another one under this id.
            let id = (consumer.session_id, consumer.value);
            if self.consumers.get(&id) == Some(&subscription) {
                self.consumers.remove(&id);
            }
            self.deliveries.lock().consumers.remove(&subscription);
        }
    }

    /// Opens a consumer of advisories, which is none of the provider's.
    fn watch(&mut self, consumer: wire::ConsumerId, wanted: Wanted, answer: Answer) -> Result<(), Refusal> {
        if wanted.is_anything() {
            self.submit(Command::WatchEvents, Then::Watching { consumer, wanted, answer })
        } else {
            self.deliveries.lock().watchers.add(&consumer, wanted);
            self.done(answer);
            Ok(())
        }
    }

    /// The provider tells of temporary destinations from now on, or does not.
    pub(super) fn watching(
        &mut self,
        consumer: &wire::ConsumerId,
        wanted: Wanted,
        answer: Answer,
        outcome: Result<(), ProviderError>,
    ) {
        let is_told = outcome.is_ok();
        // Where there are no temporary destinations there is nothing to be told of, which is no reason to refuse a client
        // that always asks.
        match outcome {
            Err(ProviderError::Unsupported(_)) => self.done(answer),
            outcome => self.settle(answer, outcome),
        }
        let mut state = self.deliveries.lock();
        let there = state.watchers.add(consumer, wanted);
        if is_told {
            // Under the lock, so that nothing that comes now overtakes it.
            self.deliveries.advise(there);
        }
    }

    /// A consumer without a window asks for a message. Of a peer of Corriere the timeout is a number of messages, or -1
    /// for a drain.
    pub(super) fn pull(&mut self, pull: &wire::MessagePull, answer: Answer) -> Result<(), Refusal> {
        let provider = self.provider()?;
        let id = &pull.consumer_id;
        let Some(&subscription) = self.consumers.get(&(id.session_id, id.value)) else {
            self.done(answer);
            return Ok(());
        };
        if self.is_corriere {
            let request = granted(pull.timeout).map_or(Request::Drain, Request::Grant);
            let mut state = self.deliveries.lock();
            let consumer = state.consumers.get_mut(&subscription);
            let is_taken = consumer.is_none_or(|consumer| consumer.grants.ask(request));
            drop(state);
            if !is_taken {
                return Err(Refusal::illegal_state(format_args!(
                    "too many pulls of consumer {id} are under way"
                )));
            }
            self.hand_on(subscription);
        } else {
            let mut state = self.deliveries.lock();
            let is_new =
                state.consumers.get_mut(&subscription).is_some_and(|consumer| consumer.pulls.begin());
            drop(state);
            if is_new {
                provider.tell(Command::Grant { subscription, credit: 1 });
            }
            match u64::try_from(pull.timeout) {
                Ok(0) => self.pull_timers.set(subscription, None),
                Ok(timeout) => {
                    // A time that no clock has is no time at all.
                    let at = Instant::now().checked_add(Duration::from_millis(timeout));
                    self.pull_timers.set(subscription, at);
                }
                Err(_) => {
                    self.pull_timers.set(subscription, None);
                    self.pull_is_over(subscription);
                }
            }
        }
        self.done(answer);
        Ok(())
    }

    /// Asks the provider for what a peer of Corriere asks for, a slice at a time, and says when a drain is complete.
    pub(super) fn hand_on(&mut self, subscription: SubscriptionId) {
        // Of a connection that is closed nobody waits any more.
        let Ok(provider) = self.provider() else { return };
        while let Some(due) = self.deliveries.next_due(subscription) {
            match due {
                Due::Ask(Request::Grant(credit)) => provider.tell(Command::Grant { subscription, credit }),
                Due::Ask(Request::Drain) => {
                    let receipt = provider.submit(Command::Drain { subscription });
                    self.when_opened(receipt, Then::Drained { subscription });
                }
                Due::Drained => self.deliveries.say_nothing_more(subscription),
            }
        }
    }

    /// The time of a consumer's latest pull is over.
    pub(super) fn pull_is_over(&mut self, subscription: SubscriptionId) {
        let mut state = self.deliveries.lock();
        let is_waiting =
            state.consumers.get_mut(&subscription).is_some_and(|consumer| consumer.pulls.expire());
        drop(state);
        if is_waiting {
            // Of a connection that is closed nobody waits any more.
            let _ = self.submit(Command::Drain { subscription }, Then::Drained { subscription });
        }
    }

    /// The provider has delivered all that there was for a consumer without a window.
    pub(super) fn drained(&mut self, subscription: SubscriptionId) {
        let mut state = self.deliveries.lock();
        let Some(consumer) = state.consumers.get_mut(&subscription) else { return };
        if self.is_corriere {
            consumer.grants.drained();
            drop(state);
            self.hand_on(subscription);
        } else if consumer.pulls.drained() {
            drop(state);
            self.deliveries.say_nothing_more(subscription);
        }
    }

    /// Closes a consumer. `last` is the number, as the broker's, of the last message that it handed to the application: what
    /// it has not acknowledged up to that one comes back counted, and the rest as if it had never gone. A peer of Corriere
    /// may still settle what it was handed.
    pub(super) fn close_consumer(
        &mut self,
        id: &wire::ConsumerId,
        last: i64,
        answer: Answer,
    ) -> Result<(), Refusal> {
        self.check_owner(&id.connection_id, "the consumer")?;
        let provider = self.provider()?;
        let key = (id.session_id, id.value);
        let mut state = self.deliveries.lock();
        if state.watchers.has(id) {
            state.watchers.retain(|watcher| watcher != id);
            drop(state);
            self.done(answer);
            return Ok(());
        }
        let Some(&subscription) = self.consumers.get(&key) else {
            return Err(Refusal::illegal_state(format_args!("there is no consumer {id}")));
        };
        let Some(consumer) = state.consumers.get_mut(&subscription) else {
            // The provider has ended it already.
            drop(state);
            self.consumers.remove(&key);
            self.pull_timers.set(subscription, None);
            self.done(answer);
            return Ok(());
        };
        let ledger = &mut consumer.ledger;
        let handed_over = if last == UNKNOWN { ledger.oldest() } else { ledger.up_to(last) };
        let last_handed_over = handed_over.unwrap_or(0).max(ledger.handed_over());
        let unsettled = ledger.oldest().filter(|oldest| *oldest <= last_handed_over && !consumer.is_browser);
        ledger.close(last_handed_over);
        if !self.is_corriere || consumer.is_browser || ledger.is_done() {
            state.consumers.remove(&subscription);
            self.consumers.remove(&key);
        }
        drop(state);
        self.pull_timers.set(subscription, None);
        let close = Command::CloseSubscription { subscription, last_handed_over };
        let closing = self.submit(close, Then::Answer(answer));
        if let Some(first) = unsettled.filter(|_| !self.is_corriere) {
            // As in ActiveMQ it does not wait for the end of the session.
            let cause = Cause::failure("its consumer was closed before it was acknowledged");
            let kind = AckKind::Redelivered { delay: Some(Duration::ZERO), cause };
            let ack = Ack { subscription, first, last: last_handed_over, kind, transaction: None };
            provider.tell(Command::Acknowledge(ack));
        }
        closing
    }

    /// Forgets a consumer that was closed, once nothing of it is left to be settled.
    pub(super) fn forget_if_done(&mut self, subscription: SubscriptionId) {
        let mut state = self.deliveries.lock();
        let done = state.consumers.get(&subscription).filter(|consumer| consumer.ledger.is_done());
        if let Some(key) = done.map(|consumer| (consumer.id.session_id, consumer.id.value)) {
            state.consumers.remove(&subscription);
            self.consumers.remove(&key);
        }
    }
}

/// What the timeout of a pull grants a peer of Corriere; `None` for a drain. It is never less than the peer says, which would
/// wait for the rest for ever.
fn granted(timeout: i64) -> Option<u32> {
    let credit = u64::try_from(timeout).ok()?;
    Some(u32::try_from(credit).unwrap_or(u32::MAX).max(1))
}

/// What a consumer can ask for in OpenWire and not have here.
fn check_offered(info: &wire::ConsumerInfo) -> Result<(), Refusal> {
    if let Some(selector) = info.selector.as_deref().filter(|selector| !selector.is_empty()) {
        let reason = format!("selectors are not offered yet; the consumer has `{selector}`");
        return Err(Refusal::new(JavaException::InvalidSelector, reason));
    }
    if info.exclusive {
        return Err(Refusal::not_offered("exclusive consumers"));
    }
    Ok(())
}

/// A client of ActiveMQ counts, delays and gives up by itself: there is no limit. What it gives up on in a queue of dead
/// letters comes back to the queue, and would go round and round without a delay.
fn redelivered_by_the_client() -> RedeliveryOverrides {
    let delay = Duration::from_secs(1);
    RedeliveryOverrides {
        maximum_redeliveries: Some(None),
        initial_delay: Some(delay),
        delay: Some(delay),
        back_off: Some(None),
        ..RedeliveryOverrides::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pull_of_a_peer_of_corriere_grants_all_that_it_says() {
        assert_eq!(granted(-1), None);
        for (timeout, credit) in [(0, 1), (1, 1), (32_768, 32_768), (i64::MAX, u32::MAX)] {
            assert_eq!(granted(timeout), Some(credit), "{timeout}");
        }
    }
}

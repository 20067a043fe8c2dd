//! The commands of the seam, as OpenWire has them (section 9).

use std::collections::VecDeque;
use std::sync::Arc;

use corriere_core::id::{ProducerId, SessionId, SubscriptionId};
use corriere_core::provider::{Capability, Command, Confirmation, Credit, ProviderError, Receipt, Subscribe};
use corriere_core::{Destination, RedeliveryPolicy};

use super::error::About;
use super::pulling::Pull;
use super::state::{Producer, State, Then, unknown};
use super::subscription::{Flow, Redelivery, Subscription};
use crate::codec::Structure;
use crate::codec::structures::{
    ConsumerInfo, Destination as WireDestination, DestinationOperation, ProducerInfo, RemoveInfo,
    SessionInfo, ShutdownInfo, TransactionOperation,
};
use crate::redelivery::ConsumerTerms;

/// How many messages are under way to a browser.
const BROWSER_WINDOW: i32 = 500;

impl State {
    /// Takes a command. `answer` says whether anybody may wait for what an acknowledgement came to.
    pub(super) fn submit(&mut self, command: Command, answer: bool) -> Receipt {
        if let Some(error) = self.ended() {
            return Receipt::ready(Err(error));
        }
        if self.is_closing {
            return Receipt::ready(Err(ProviderError::Lost));
        }
        self.take(command, answer).unwrap_or_else(|error| Receipt::ready(Err(error)))
    }

    fn take(&mut self, command: Command, answer: bool) -> Result<Receipt, ProviderError> {
        match command {
            // The client does what a mode says by itself.
            Command::OpenSession { session, mode: _ } => self.open_session(session),
            Command::CloseSession { session } => self.close_session(session),
            Command::OpenProducer { producer, session, identity, destination } => {
                self.open_producer(producer, session, &identity, destination.as_ref())
            }
            Command::CloseProducer { producer } => self.close_producer(producer),
            Command::OpenSubscription(subscribe) => self.open_subscription(*subscribe),
            Command::CloseSubscription { subscription, last_handed_over } => {
                self.close_subscription(subscription, last_handed_over)
            }
            Command::Send(send) => self.send(send),
            Command::Acknowledge(ack) => self.acknowledge(ack, answer),
            Command::HandedOver { subscription, number, mark: _ } => self.handed_over(subscription, number),
            Command::Grant { subscription, credit } => self.grant(subscription, credit),
            Command::Drain { subscription } => self.drain(subscription),
            Command::Begin { transaction } => self.begin(transaction),
            Command::Commit { transaction, one_phase: _ } => {
                self.end_transaction(&transaction, TransactionOperation::CommitOnePhase)
            }
            Command::Rollback { transaction, cause: _ } => {
                self.end_transaction(&transaction, TransactionOperation::Rollback)
            }
            Command::Browse { subscription, session, destination, selector } => {
                self.browse(subscription, session, &destination, selector.as_deref())
            }
            Command::CreateTemporary { destination } => {
                Ok(self.change_temporary(&destination, DestinationOperation::Add))
            }
            Command::DeleteTemporary { destination } => self.delete_temporary(&destination),
            Command::WatchEvents => Ok(self.watch_events()),
            Command::Close => Ok(self.close()),
            Command::Unsubscribe { name } => self.unsubscribe(name),
            Command::ChangeWindow { subscription, prefetch, extension } => {
                self.change_window(subscription, prefetch, extension)
            }
            // Those of distributed transactions, and whatever is not known here.
            _ => Err(ProviderError::Unsupported(Capability::DistributedTransactions)),
        }
    }

    fn open_session(&mut self, session: SessionId) -> Result<Receipt, ProviderError> {
        if !self.sessions.insert(session) {
            return Err(ProviderError::Exists { what: format!("session {session}") });
        }
        let session_id = self.session_id(session);
        let info = SessionInfo { response_required: true, session_id, ..SessionInfo::default() };
        Ok(self.ask(info, About::Other, Then::Confirm(Confirmation::Done)))
    }

    fn close_session(&mut self, session: SessionId) -> Result<Receipt, ProviderError> {
        if !self.sessions.remove(&session) {
            return Err(unknown(format_args!("session {session}")));
        }
        let of_it = self.subscriptions.values().filter(|subscription| subscription.session == session);
        for subscription in of_it.map(|subscription| subscription.id).collect::<Vec<_>>() {
            self.remove_subscription(subscription, false);
        }
        self.producers.retain(|_, producer| producer.session != session);
        Ok(self.remove(self.session_id(session), -1))
    }

    fn open_producer(
        &mut self,
        producer: ProducerId,
        session: SessionId,
        identity: &str,
        destination: Option<&Destination>,
    ) -> Result<Receipt, ProviderError> {
        self.check_session(session)?;
        if self.producers.contains_key(&producer) {
            return Err(ProviderError::Exists { what: format!("producer {producer}") });
        }
        // What the ids of its messages say, where that is of the form that the wire has for it.
        let producer_id = identity.parse().unwrap_or_else(|_| crate::codec::structures::ProducerId {
            connection_id: Arc::clone(&self.peer.connection.value),
            value: producer.0.cast_signed(),
            session_id: session.0.cast_signed(),
        });
        self.producers.insert(producer, Producer { id: producer_id.clone(), session });
        let info = ProducerInfo {
            response_required: true,
            producer_id,
            destination: destination.map(WireDestination::from),
            ..ProducerInfo::default()
        };
        let about = destination.map_or(About::Other, |one| About::Destination(one.to_string()));
        Ok(self.ask(info, about, Then::Confirm(Confirmation::Done)))
    }

    fn close_producer(&mut self, producer: ProducerId) -> Result<Receipt, ProviderError> {
        let closed =
            self.producers.remove(&producer).ok_or_else(|| unknown(format_args!("producer {producer}")))?;
        Ok(self.remove(closed.id, -1))
    }

    fn open_subscription(&mut self, subscribe: Subscribe) -> Result<Receipt, ProviderError> {
        let client_id = subscribe.durable_name.as_ref().map(|name| self.client_id_for(name)).transpose()?;
        refuse_selector(subscribe.selector.as_deref())?;
        let (prefetch_size, extension) = match subscribe.credit {
            Credit::Window { prefetch, extension } => {
                (i32::try_from(prefetch).unwrap_or(i32::MAX), extension)
            }
            Credit::Explicit => (0, None),
        };
        let wanted = subscribe.redelivery.unwrap_or_default();
        let (flow, redelivery, additional_predicate) = if self.peer.redelivers {
            let terms = ConsumerTerms {
                extension,
                is_default_credit: subscribe.is_default_credit,
                redelivery: wanted,
            };
            let flow = Flow::AsGranted { drains: VecDeque::new(), is_browser: false };
            (flow, Redelivery::Peer, Some(terms.to_structure()))
        } else {
            let flow = match subscribe.credit {
                Credit::Window { prefetch, extension } => Flow::Window { prefetch, extension },
                Credit::Explicit => Flow::Pull(Pull::default()),
            };
            (flow, Redelivery::Here(wanted.over(&RedeliveryPolicy::default())), None)
        };
        let info = ConsumerInfo {
            prefetch_size,
            // A pull has brought all that it brings when it is answered only where nothing is dispatched behind its back.
            dispatch_async: prefetch_size > 0,
            no_local: subscribe.no_local,
            client_id,
            subscription_name: subscribe.durable_name,
            additional_predicate,
            ..ConsumerInfo::default()
        };
        self.consume(
            subscribe.subscription,
            subscribe.session,
            &subscribe.destination,
            flow,
            redelivery,
            info,
        )
    }

    fn browse(
        &mut self,
        subscription: SubscriptionId,
        session: SessionId,
        destination: &Destination,
        selector: Option<&str>,
    ) -> Result<Receipt, ProviderError> {
        if destination.is_topic() {
            return Err(ProviderError::InvalidDestination {
                destination: destination.to_string(),
                reason: "only a queue can be browsed".to_owned(),
            });
        }
        refuse_selector(selector)?;
        let (flow, prefetch_size) = if self.peer.redelivers {
            (Flow::AsGranted { drains: VecDeque::new(), is_browser: true }, 0)
        } else {
            (Flow::Browser { credit: 0, is_over: false, is_told: false }, BROWSER_WINDOW)
        };
        let info =
            ConsumerInfo { browser: true, prefetch_size, dispatch_async: true, ..ConsumerInfo::default() };
        let redelivery = Redelivery::Here(RedeliveryPolicy::default());
        self.consume(subscription, session, destination, flow, redelivery, info)
    }

    fn consume(
        &mut self,
        subscription: SubscriptionId,
        session: SessionId,
        destination: &Destination,
        flow: Flow,
        redelivery: Redelivery,
        info: ConsumerInfo,
    ) -> Result<Receipt, ProviderError> {
        self.check_session(session)?;
        if self.subscriptions.contains_key(&subscription) {
            return Err(ProviderError::Exists { what: format!("subscription {subscription}") });
        }
        let on_the_wire = WireDestination::from(destination);
        // ActiveMQ leaves this to its clients.
        if on_the_wire.owner().is_some_and(|owner| owner != &*self.peer.connection.value) {
            return Err(ProviderError::InvalidDestination {
                destination: destination.to_string(),
                reason: "only the connection that made a temporary destination consumes from it".to_owned(),
            });
        }
        let consumer_id = self.consumer_id(session, subscription);
        let info = ConsumerInfo {
            response_required: true,
            consumer_id: consumer_id.clone(),
            destination: Some(on_the_wire.clone()),
            ..info
        };
        let has_window = info.prefetch_size > 0 && !info.browser;
        let mut new = Subscription::new(subscription, session, consumer_id, on_the_wire, flow, redelivery);
        new.has_window = has_window;
        self.subscriptions.insert(subscription, new);
        let about = match (&info.subscription_name, &info.client_id) {
            (Some(name), Some(client_id)) => About::Durable {
                name: Arc::clone(name),
                client_id: Arc::clone(client_id),
                destination: Some(destination.to_string()),
            },
            _ => About::Destination(destination.to_string()),
        };
        // A peer of Corriere says when it has delivered all that waited.
        let is_told = self.peer.redelivers && info.prefetch_size > 0;
        if is_told {
            self.expect(info, None, about, Then::Opened(subscription));
            return self.drain(subscription);
        }
        Ok(self.ask(info, about, Then::Opened(subscription)))
    }

    fn close_subscription(
        &mut self,
        subscription: SubscriptionId,
        last_handed_over: u64,
    ) -> Result<Receipt, ProviderError> {
        let closing = self.subscription(subscription)?;
        closing.hand_over(last_handed_over);
        closing.close();
        self.end_drains(subscription);
        let closing = self.subscription(subscription)?;
        if closing.is_done() {
            return Ok(self.remove_subscription(subscription, true).unwrap_or_else(done));
        }
        // The session may still settle something of it, which a peer of Corriere knows. Another takes all of it back with the
        // consumer, so that stays there until then.
        if !closing.peer_redelivers() || std::mem::replace(&mut closing.is_removed, true) {
            return Ok(done());
        }
        let (consumer, last_delivered) = (closing.consumer.clone(), closing.last_delivered());
        Ok(self.remove(consumer, last_delivered))
    }

    /// Tells the peer that a consumer is gone, with what the application has got of it.
    pub(super) fn remove_subscription(&mut self, id: SubscriptionId, is_awaited: bool) -> Option<Receipt> {
        self.end_drains(id);
        let subscription = self.subscriptions.remove(&id)?;
        let (last_delivered, is_removed) = (subscription.last_delivered(), subscription.is_removed);
        let consumer = subscription.consumer;
        if is_removed {
            return None;
        }
        if is_awaited {
            return Some(self.remove(consumer, last_delivered));
        }
        self.tell(remove_info(consumer, last_delivered));
        None
    }

    fn end_drains(&mut self, id: SubscriptionId) {
        let Some(subscription) = self.subscriptions.get_mut(&id) else { return };
        let gone = unknown(format_args!("subscription {id}"));
        let drains = subscription.take_drains().into_iter();
        self.effects.confirmed.extend(drains.map(|confirmer| (confirmer, Err(gone.clone()))));
    }

    fn remove(&mut self, object: impl Into<Structure>, last_delivered: i64) -> Receipt {
        let info = RemoveInfo { response_required: true, ..remove_info(object, last_delivered) };
        self.ask(info, About::Other, Then::Confirm(Confirmation::Done))
    }

    fn close(&mut self) -> Receipt {
        for subscription in self.subscriptions.keys().copied().collect::<Vec<_>>() {
            self.remove_subscription(subscription, false);
        }
        let info = remove_info(self.peer.connection.clone(), -1);
        let info = RemoveInfo { response_required: true, ..info };
        let receipt = self.ask(info, About::Other, Then::Closed);
        self.tell(ShutdownInfo::default());
        self.is_closing = true;
        self.close_outbox();
        receipt
    }

    fn check_session(&self, session: SessionId) -> Result<(), ProviderError> {
        if self.sessions.contains(&session) {
            return Ok(());
        }
        Err(unknown(format_args!("session {session}")))
    }

    pub(super) fn subscription(&mut self, id: SubscriptionId) -> Result<&mut Subscription, ProviderError> {
        self.subscriptions.get_mut(&id).ok_or_else(|| unknown(format_args!("subscription {id}")))
    }
}

pub(super) fn done() -> Receipt {
    Receipt::ready(Ok(Confirmation::Done))
}

fn remove_info(object: impl Into<Structure>, last_delivered: i64) -> RemoveInfo {
    RemoveInfo {
        object_id: Some(object.into()),
        last_delivered_sequence_id: last_delivered,
        ..RemoveInfo::default()
    }
}

/// No selector is promised to be understood, so none is passed on as if it were.
fn refuse_selector(selector: Option<&str>) -> Result<(), ProviderError> {
    selector.map_or(Ok(()), |_| Err(ProviderError::Unsupported(Capability::Selectors)))
}

//! What clients may count on, kept apart from machine and model: what was accepted is delivered, what was refused or
//! rolled back never is, what was settled does not come again, and a producer's messages come in their order.

use std::sync::Arc;

use corriere_broker::machine::{ConnectionKey, Ticket};
use corriere_core::provider::{AckKind, Command, Confirmation, Dispatch, ProviderError};
use corriere_core::{Destination, Message, MessageId, SubscriptionId, TransactionId};
use corriere_tests::model::{Judgement, Violation, id_of};

type Outcomes = [(Ticket, Result<Confirmation, ProviderError>)];

/// What a client notes.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    sent: Vec<Sent>,
    commits: Vec<(TransactionId, Ticket)>,
    clients: Vec<(ConnectionKey, &'static str)>,
    subscriptions: Vec<((ConnectionKey, SubscriptionId), Source)>,
    browsers: Vec<(ConnectionKey, SubscriptionId)>,
    deliveries: Vec<Delivery>,
    settled: Vec<(Source, MessageId, Ticket)>,
    /// What an operator had in his hands: it may be gone, elsewhere, behind others, or there more than once.
    managed: Vec<MessageId>,
}

#[derive(Debug)]
struct Sent {
    message: Arc<Message>,
    ticket: Ticket,
    transaction: Option<TransactionId>,
    /// Whether a process ended since, with what it had in memory.
    may_be_lost: bool,
}

impl Sent {
    fn goes_to(&self, destination: &Destination) -> bool {
        self.message.headers().destination.as_ref() == Some(destination)
    }

    /// Whether a queue holds it until somebody takes it.
    fn is_kept(&self) -> bool {
        let headers = self.message.headers();
        !self.may_be_lost
            && headers.expiration.is_none()
            && headers.destination.as_ref().is_some_and(|to| !to.is_topic() && !to.is_temporary())
    }

    /// Whether the same producer sent both in the same way, so that one never overtakes the other.
    fn is_alike(&self, other: &Self) -> bool {
        let (this, that) = (self.message.headers(), other.message.headers());
        id_of(&self.message).producer == id_of(&other.message).producer
            && this.destination == that.destination
            && this.priority == that.priority
            && this.delivery_mode == that.delivery_mode
            && self.transaction == other.transaction
    }
}

fn is_final(kind: &AckKind) -> bool {
    matches!(kind, AckKind::Standard | AckKind::Individual | AckKind::Unmatched)
}

#[derive(Debug)]
struct Delivery {
    subscription: (ConnectionKey, SubscriptionId),
    number: u64,
    source: Source,
    id: MessageId,
}

/// Where a message was taken from: a queue, or a topic as one subscription sees it, by its name if it is durable.
type Source = (Destination, Option<String>);

impl Ledger {
    pub(crate) fn connected(&mut self, connection: ConnectionKey, client_id: Option<&'static str>) {
        self.clients.extend(client_id.map(|client_id| (connection, client_id)));
    }

    pub(crate) fn client_id(&self, connection: ConnectionKey) -> Option<&'static str> {
        self.clients.iter().find(|(other, _)| *other == connection).map(|(_, client_id)| *client_id)
    }

    /// A client asks for something; `unsettled` are the numbers of the acknowledged subscription that it has.
    pub(crate) fn asked(
        &mut self,
        connection: ConnectionKey,
        ticket: Ticket,
        command: &Command,
        unsettled: &[u64],
    ) {
        match command {
            Command::Send(send) => self.sent.push(Sent {
                message: Arc::clone(&send.message),
                ticket,
                transaction: send.transaction.clone(),
                may_be_lost: false,
            }),
            Command::Commit { transaction, .. } | Command::Prepare { transaction } => {
                self.commits.push((transaction.clone(), ticket));
            }
            Command::OpenSubscription(subscribe) => {
                let key = (connection, subscribe.subscription);
                let client_id = self.client_id(connection);
                let name = subscribe.durable_name.as_ref().map(|name| format!("{name} of {client_id:?}"));
                let name = name.or_else(|| subscribe.destination.is_topic().then(|| format!("{key:?}")));
                self.subscriptions.push((key, (subscribe.destination.clone(), name)));
            }
            Command::Browse { subscription, .. } => self.browsers.push((connection, *subscription)),
            Command::Acknowledge(ack) if ack.transaction.is_none() && is_final(&ack.kind) => {
                let subscription = (connection, ack.subscription);
                for delivery in self.deliveries.iter().filter(|delivery| {
                    delivery.subscription == subscription
                        && (ack.first..=ack.last).contains(&delivery.number)
                        && unsettled.contains(&delivery.number)
                }) {
                    self.settled.push((delivery.source.clone(), delivery.id.clone(), ticket));
                }
            }
            _ => {}
        }
    }

    pub(crate) fn managed(&mut self, messages: impl IntoIterator<Item = MessageId>) {
        self.managed.extend(messages);
    }

    /// The process ended: what was not confirmed may or may not have been, and what was not stored is lost.
    pub(crate) fn restart(&mut self, outcomes: &Outcomes) {
        let is_confirmed =
            |ticket: Ticket| outcomes.iter().any(|(other, outcome)| *other == ticket && outcome.is_ok());
        self.settled.retain(|(_, _, ticket)| is_confirmed(*ticket));
        for sent in &mut self.sent {
            sent.may_be_lost |= !sent.message.headers().is_persistent();
        }
    }

    pub(crate) fn delivered(&mut self, connection: ConnectionKey, dispatch: &Dispatch) -> Judgement {
        let subscription = (connection, dispatch.subscription);
        if self.browsers.contains(&subscription) {
            // It is shown, and still to be delivered.
            return Ok(());
        }
        let source = self.source(subscription)?;
        let id = id_of(&dispatch.message);
        // What was sent to a topic may die once for each subscription.
        let is_one_of_several = !source.0.is_topic()
            && dispatch.message.headers().destination.as_ref().is_some_and(Destination::is_topic);
        let is_managed = self.managed.contains(&id);
        if !is_one_of_several
            && !is_managed
            && self.settled.iter().any(|(other, settled, _)| *other == source && *settled == id)
        {
            return Err(Violation(format!("{id} comes again from {source:?}, where it was settled")));
        }
        if !is_managed {
            self.check_order(&source, subscription, &id)?;
        }
        self.deliveries.push(Delivery { subscription, number: dispatch.number, source, id });
        Ok(())
    }

    /// The end, when everything was consumed.
    pub(crate) fn check(&self, outcomes: &Outcomes) -> Judgement {
        let find =
            |ticket: Ticket| outcomes.iter().find(|(other, _)| *other == ticket).map(|(_, outcome)| outcome);
        for sent in &self.sent {
            let id = id_of(&sent.message);
            let came = self.deliveries.iter().any(|delivery| delivery.id == id);
            let ends: Vec<_> = match &sent.transaction {
                Some(transaction) => {
                    let ends = self.commits.iter().filter(|(other, _)| other == transaction);
                    ends.filter_map(|(_, ticket)| find(*ticket)).collect()
                }
                None => find(sent.ticket).into_iter().collect(),
            };
            let is_accepted = ends.iter().any(|outcome| **outcome == Ok(Confirmation::Done));
            let refused = ends.iter().find_map(|outcome| outcome.as_ref().err()).filter(|error| {
                sent.transaction.is_none() || matches!(error, ProviderError::RolledBack { .. })
            });
            let is_sent_again = self.sent.iter().filter(|other| id_of(&other.message) == id).count() > 1;
            if is_accepted && !came && sent.is_kept() && !self.managed.contains(&id) {
                return Err(Violation(format!("{id} was accepted and never came")));
            }
            if let Some(error) = refused.filter(|_| came && !is_accepted && !is_sent_again) {
                return Err(Violation(format!("{id} came although its sender was told: {error}")));
            }
        }
        Ok(())
    }

    /// At its first delivery a message comes after those that the same producer sent before it in the same way, if
    /// the same consumer takes both.
    fn check_order(
        &self,
        source: &Source,
        subscription: (ConnectionKey, SubscriptionId),
        id: &MessageId,
    ) -> Judgement {
        let is_new = |id: &MessageId, before: usize| {
            !self.deliveries[..before].iter().any(|delivery| delivery.id == *id && delivery.source == *source)
        };
        let find = |id: &MessageId| {
            self.sent.iter().find(|sent| id_of(&sent.message) == *id && sent.goes_to(&source.0))
        };
        let Some(sent) = find(id) else { return Ok(()) };
        if !is_new(id, self.deliveries.len()) {
            return Ok(());
        }
        let overtaken_by = self.deliveries.iter().enumerate().find(|(index, delivery)| {
            delivery.subscription == subscription
                && delivery.id.sequence > id.sequence
                && !self.managed.contains(&delivery.id)
                && find(&delivery.id).is_some_and(|other| other.is_alike(sent))
                && is_new(&delivery.id, *index)
        });
        match overtaken_by {
            Some((_, delivery)) => Err(Violation(format!("{} overtook {id}", delivery.id))),
            None => Ok(()),
        }
    }

    fn source(&self, subscription: (ConnectionKey, SubscriptionId)) -> Result<Source, Violation> {
        let known = self.subscriptions.iter().find(|(other, _)| *other == subscription);
        let Some((_, source)) = known else {
            return Err(Violation(format!("{subscription:?} gets messages and was never opened")));
        };
        Ok(source.clone())
    }
}

//! Sessions and producers: opened and closed, and the connection closed with all it has.

use corriere_core::provider::{Command, SessionMode};
use corriere_core::{ProducerId, SessionId, SubscriptionId};

use super::confirmations::{Answer, Then};
use super::connection::{Connection, Producer};
use super::exceptions::Refusal;
use crate::codec::structures as wire;

impl Connection {
    /// Opens a session. It takes any acknowledgement, as the client does what its mode says.
    pub(super) fn open_session(&mut self, id: &wire::SessionId, answer: Answer) -> Result<(), Refusal> {
        self.check_owner(&id.connection_id, "the session")?;
        if self.sessions.contains_key(&id.value) {
            self.done(answer);
            return Ok(());
        }
        let session = SessionId(self.next_number());
        self.sessions.insert(id.value, session);
        self.submit(Command::OpenSession { session, mode: SessionMode::Client }, Then::Answer(answer))
    }

    /// The session of this number.
    pub(super) fn session(&self, number: i64) -> Result<SessionId, Refusal> {
        self.sessions.get(&number).copied().ok_or_else(|| {
            Refusal::illegal_state(format_args!("there is no session {number}; expected SessionInfo before"))
        })
    }

    pub(super) fn open_producer(&mut self, info: &wire::ProducerInfo, answer: Answer) -> Result<(), Refusal> {
        let id = &info.producer_id;
        self.check_owner(&id.connection_id, "the producer")?;
        let key = (id.session_id, id.value);
        if self.producers.contains_key(&key) {
            self.done(answer);
            return Ok(());
        }
        let session = self.session(id.session_id)?;
        let destination = info.destination.as_ref().map(wire::Destination::to_core).transpose()?;
        let producer = ProducerId(self.next_number());
        let open = Command::OpenProducer { producer, session, identity: id.to_string().into(), destination };
        self.producers.insert(key, Producer { number: producer, has_window: info.window_size > 0 });
        let receipt = self.provider()?.submit(open);
        self.when_opened(receipt, Then::ProducerOpened { key, answer });
        Ok(())
    }

    /// A producer is there, or is not.
    pub(super) fn producer_opened(
        &mut self,
        key: (i64, i64),
        answer: Answer,
        outcome: Result<(), impl Into<Refusal>>,
    ) {
        if outcome.is_err() {
            self.producers.remove(&key);
        }
        self.settle(answer, outcome);
    }

    pub(super) fn close_producer(&mut self, id: &wire::ProducerId, answer: Answer) -> Result<(), Refusal> {
        self.check_owner(&id.connection_id, "the producer")?;
        let Some(producer) = self.producers.remove(&(id.session_id, id.value)) else {
            return Err(Refusal::illegal_state(format_args!("there is no producer {id}")));
        };
        self.submit(Command::CloseProducer { producer: producer.number }, Then::Answer(answer))
    }

    /// Closes a session with all it has. `last` is the number, as the broker's, of the last message that one of its consumers
    /// handed to the application.
    pub(super) fn close_session(
        &mut self,
        id: &wire::SessionId,
        last: i64,
        answer: Answer,
    ) -> Result<(), Refusal> {
        self.check_owner(&id.connection_id, "the session")?;
        let Some(session) = self.sessions.remove(&id.value) else {
            return Err(Refusal::illegal_state(format_args!("there is no session {id}")));
        };
        self.producers.retain(|(of, _), _| *of != id.value);
        let mut closed = Vec::new();
        self.consumers.retain(|(of, _), subscription| {
            let stays = *of != id.value;
            if !stays {
                closed.push(*subscription);
            }
            stays
        });
        self.deliveries.lock().watchers.retain(|consumer| consumer.session_id != id.value);
        self.end_consumers(&closed, last)?;
        self.submit(Command::CloseSession { session }, Then::Answer(answer))
    }

    /// Closes the connection with all it has; what follows but `ShutdownInfo` is refused. What it has sent that waits for room
    /// is still taken in, or refused at its deadline, before the connection is closed, as ActiveMQ does.
    pub(super) fn close_connection(
        &mut self,
        id: &wire::ConnectionId,
        last: i64,
        answer: Answer,
    ) -> Result<(), Refusal> {
        self.check_owner(&id.value, "what is to be removed")?;
        self.close_all(last)?;
        self.closing = Some(answer);
        if self.awaited == 0 {
            self.finish_closing();
        }
        Ok(())
    }

    /// Closes all that the connection has but itself, and takes nothing more.
    pub(super) fn close_all(&mut self, last: i64) -> Result<(), Refusal> {
        let consumers: Vec<_> = self.consumers.drain().map(|(_, subscription)| subscription).collect();
        self.returned += self.end_consumers(&consumers, last)?;
        self.deliveries.lock().watchers.retain(|_| false);
        let provider = self.provider()?;
        // With nothing to wait for, the connection ends all of it at once.
        if self.awaited > 0 {
            for transaction in self.transactions.open() {
                provider.tell(Command::Rollback { transaction, cause: None });
            }
            for session in self.sessions.values() {
                provider.tell(Command::CloseSession { session: *session });
            }
        }
        self.is_closed = true;
        Ok(())
    }

    /// Closes the connection that was to be closed, now that nothing is left that it has to wait for.
    pub(super) fn finish_closing(&mut self) {
        let Some(introduced) = &self.introduced else { return };
        if let Some(answer) = self.closing.take() {
            let receipt = introduced.provider.submit(Command::Close);
            self.when_opened(receipt, Then::Closed(answer));
        }
    }

    /// Ends consumers whose session ends next, which takes back, counted, what was handed over. A peer of Corriere has said
    /// of each message that it was. Says how many messages go back.
    fn end_consumers(&mut self, consumers: &[SubscriptionId], last: i64) -> Result<u64, Refusal> {
        let provider = self.provider()?;
        let mut returned = 0;
        for subscription in consumers {
            self.pull_timers.set(*subscription, None);
            let Some(consumer) = self.deliveries.lock().consumers.remove(subscription) else { continue };
            if !self.is_corriere {
                let ledger = &consumer.ledger;
                let handed_over = match last {
                    UNKNOWN => ledger.oldest(),
                    // As ActiveMQ has it.
                    last if consumer.is_durable => ledger.up_to(last),
                    // The number is that of one consumer; the others of the session have no message of it.
                    last => ledger.at(last),
                };
                let last_handed_over = handed_over.unwrap_or(0).max(ledger.handed_over());
                provider.tell(Command::CloseSubscription { subscription: *subscription, last_handed_over });
            }
            returned += self.transactions.returned(*subscription, consumer);
        }
        Ok(returned)
    }
}

/// `RemoveInfo.lastDeliveredSequenceId` of a peer that does not know which message it was.
pub(super) const UNKNOWN: i64 = -2;

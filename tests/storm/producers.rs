//! Who sends.

use std::sync::Arc;
use std::time::Duration;

use corriere::core::{AcknowledgeMode, Connection, DeliveryMode, Error, Message, SendOptions, Session};

use crate::clients::Role;
use crate::ledger::{Fate, Holder, Sending, TransactionNumber, lacks_room};
use crate::plan::{ProducerPlan, Target};
use crate::storm::Storm;
use corriere_tests::random::Random;

#[derive(Debug)]
pub(crate) struct Producer {
    pub(crate) storm: Arc<Storm>,
    pub(crate) number: usize,
    pub(crate) plan: ProducerPlan,
    pub(crate) random: Random,
}

/// Whether a send that failed for want of room leaves its client as it was.
pub(crate) fn unless_lacking_room(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(error) if !lacks_room(&error) => Err(error),
        _ => Ok(()),
    }
}

impl Role for Producer {
    async fn work(&mut self, connection: &Connection, holder: &Arc<Holder>) -> Result<(), Error> {
        let is_transacted = self.plan.other.is_some();
        let mode = if is_transacted { AcknowledgeMode::Transacted } else { AcknowledgeMode::Auto };
        let session = connection.create_session(mode).await?;
        for _ in 0..self.random.between(20, 200) {
            self.pause().await;
            if self.is_over() {
                break;
            }
            match self.plan.other {
                None => self.send(&session, holder, self.plan.to, None).await?,
                Some(other) => self.send_together(&session, holder, other).await?,
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        !self.storm.is_producing()
    }
}

impl Producer {
    async fn pause(&mut self) {
        let pause = Duration::from_millis(self.random.between(1, 60));
        tokio::time::sleep(pause).await;
        while self.is_full() && !self.is_over() {
            tokio::time::sleep(pause).await;
        }
    }

    fn is_full(&self) -> bool {
        let other = self.plan.other.is_some_and(|other| self.storm.is_full(other));
        other || self.storm.is_full(self.plan.to)
    }

    async fn send(
        &mut self,
        session: &Session,
        holder: &Arc<Holder>,
        to: Target,
        transaction: Option<TransactionNumber>,
    ) -> Result<(), Error> {
        let is_persistent = self.plan.is_persistent || (transaction.is_some() && self.random.one_in(2));
        let sending = Sending { to, is_persistent, transaction, is_in_line: true };
        let sender = Sender { storm: &self.storm, session, holder, producer: self.number };
        unless_lacking_room(sender.send(sending, &mut self.random).await)
    }

    /// Some messages to two destinations, all of them or none.
    async fn send_together(
        &mut self,
        session: &Session,
        holder: &Arc<Holder>,
        other: Target,
    ) -> Result<(), Error> {
        let ledger = Arc::clone(&self.storm.ledger);
        let transaction = ledger.begin();
        for number in 0..self.random.between(1, 6) {
            let to = if number % 2 == 0 { self.plan.to } else { other };
            self.send(session, holder, to, Some(transaction)).await?;
        }
        if self.random.one_in(6) {
            session.rollback().await?;
            ledger.end_transaction(transaction, Fate::RolledBack);
            return Ok(());
        }
        commit(&self.storm, session, transaction).await.map(drop)
    }
}

/// Who sends, over which session.
pub(crate) struct Sender<'a> {
    pub(crate) storm: &'a Storm,
    pub(crate) session: &'a Session,
    pub(crate) holder: &'a Arc<Holder>,
    pub(crate) producer: usize,
}

impl Sender<'_> {
    /// Sends the producer's next message.
    pub(crate) async fn send(&self, sending: Sending, random: &mut Random) -> Result<(), Error> {
        let Self { storm, session, holder, producer } = self;
        let name = storm.ledger.sending(*producer, holder, sending);
        let size = if random.one_in(40) { 16 << 10 } else { random.between(0, 300) as usize };
        let message = Message::text(format!("{} {} {}", name.producer, name.number, "x".repeat(size)));
        let mode = if sending.is_persistent { DeliveryMode::Persistent } else { DeliveryMode::NonPersistent };
        let options = SendOptions { delivery_mode: Some(mode), ..SendOptions::default() };
        let outcome = session.send(storm.destination(sending.to), &message, &options).await.map(drop);
        if sending.transaction.is_none() {
            storm.ledger.sent(name, outcome.as_ref().copied());
        }
        outcome
    }
}

/// Commits, and says whether it did or rolled back; an error is a commit in doubt.
pub(crate) async fn commit(
    storm: &Storm,
    session: &Session,
    transaction: TransactionNumber,
) -> Result<bool, Error> {
    storm.ledger.end_transaction(transaction, Fate::InDoubt);
    match session.commit().await {
        Ok(()) => {
            storm.ledger.end_transaction(transaction, Fate::Committed);
            Ok(true)
        }
        Err(Error::TransactionRolledBack { .. }) => {
            storm.ledger.end_transaction(transaction, Fate::RolledBack);
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

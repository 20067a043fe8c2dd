//! Who receives, each in its mode, and sends on within its transactions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use corriere::core::AcknowledgeMode::{Auto, Client, DupsOk, Individual, Transacted};
use corriere::core::{self, Connection, Delivery, Error, Session};

use crate::clients::Role;
use crate::ledger::{End, Fate, Holder, Ledger, Name, Sending, Taken, TransactionNumber};
use crate::plan::ConsumerPlan;
use crate::producers::{Sender, commit, unless_lacking_room};
use crate::storm::Storm;
use corriere_tests::random::Random;

/// How long a receive waits; what it has by then is settled.
const WAIT: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) storm: Arc<Storm>,
    /// Its number as a producer of what it sends on.
    pub(crate) producer: usize,
    pub(crate) plan: ConsumerPlan,
    pub(crate) random: Random,
}

/// A consumer of the session at work, and what it gave back.
#[derive(Debug)]
struct Receiving {
    consumer: core::Consumer,
    returning: Returning,
}

/// A transaction that is to be ended.
struct Ending<'a> {
    session: &'a Session,
    holder: &'a Arc<Holder>,
    transaction: TransactionNumber,
}

/// What was received and is not settled, by the consumer that received it.
struct Received {
    by: usize,
    delivery: Delivery,
    taken: Taken,
}

impl Role for Consumer {
    async fn work(&mut self, connection: &Connection, holder: &Arc<Holder>) -> Result<(), Error> {
        let session = connection.create_session(self.plan.mode).await?;
        let mut receiving = Vec::new();
        for queue in &self.plan.queues {
            let queue = self.storm.queue(*queue);
            let consumer = session.create_consumer_with_prefetch(queue, self.plan.prefetch).await?;
            receiving.push(Receiving { consumer, returning: Returning::default() });
        }
        for _ in 0..self.random.between(20, 200) {
            if self.is_over() {
                break;
            }
            let transaction = (self.plan.mode == Transacted).then(|| self.storm.ledger.begin());
            let received = self.receive(&mut receiving, holder, transaction).await?;
            if received.is_empty() {
                continue;
            }
            match (self.plan.mode, transaction) {
                (Transacted, Some(transaction)) => {
                    let ending = Ending { session: &session, holder, transaction };
                    self.end_transaction(&ending, &mut receiving, received).await?;
                }
                (Client, _) => self.acknowledge(&session, &mut receiving, received).await?,
                (Individual, _) => self.acknowledge_each(&session, &mut receiving, received).await?,
                (Auto | DupsOk | Transacted, _) => {}
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        !self.storm.is_consuming()
    }
}

impl Consumer {
    /// Some messages, as far as there are any.
    async fn receive(
        &mut self,
        receiving: &mut [Receiving],
        holder: &Arc<Holder>,
        transaction: Option<TransactionNumber>,
    ) -> Result<Vec<Received>, Error> {
        let ledger = &self.storm.ledger;
        let end = if matches!(self.plan.mode, Auto | DupsOk) { End::Returned } else { End::Held };
        let mut received = Vec::new();
        for turn in 0..self.random.between(1, 8) as usize {
            let by = turn % receiving.len();
            let one = &mut receiving[by];
            let Some(delivery) = one.consumer.receive_timeout(WAIT).await? else { break };
            // Nothing is awaited between the return of the receive and its note.
            let taken = ledger.handed_over(holder, &delivery, end, transaction);
            one.returning.check(ledger, holder, taken, delivery.count());
            received.push(Received { by, delivery, taken });
        }
        Ok(received)
    }

    async fn acknowledge(
        &mut self,
        session: &Session,
        receiving: &mut [Receiving],
        received: Vec<Received>,
    ) -> Result<(), Error> {
        let ledger = Arc::clone(&self.storm.ledger);
        if self.random.one_in(8) {
            give_back(&ledger, receiving, &received);
            return session.recover().await;
        }
        let taken: Vec<Taken> = received.iter().map(|one| one.taken).collect();
        ledger.end(&taken, End::Settling);
        match received.last() {
            Some(last) if self.random.one_in(2) => last.delivery.acknowledge().await?,
            _ => session.acknowledge().await?,
        }
        ledger.end(&taken, End::Settled);
        Ok(())
    }

    /// One by one, in any order; now and then the rest is given back.
    async fn acknowledge_each(
        &mut self,
        session: &Session,
        receiving: &mut [Receiving],
        mut received: Vec<Received>,
    ) -> Result<(), Error> {
        let ledger = Arc::clone(&self.storm.ledger);
        self.random.shuffle(&mut received);
        while let Some(one) = received.pop() {
            if self.random.one_in(20) {
                received.push(one);
                give_back(&ledger, receiving, &received);
                return session.recover().await;
            }
            ledger.end(&[one.taken], End::Settling);
            one.delivery.acknowledge().await?;
            ledger.end(&[one.taken], End::Settled);
        }
        Ok(())
    }

    async fn end_transaction(
        &mut self,
        Ending { session, holder, transaction }: &Ending<'_>,
        receiving: &mut [Receiving],
        received: Vec<Received>,
    ) -> Result<(), Error> {
        let transaction = *transaction;
        let ledger = Arc::clone(&self.storm.ledger);
        if let Some(queue) = self.plan.onward {
            for _ in 0..self.random.between(0, received.len() as u64) {
                let sending =
                    Sending { queue, is_persistent: true, transaction: Some(transaction), is_in_line: true };
                let sender = Sender { storm: &self.storm, session, holder, producer: self.producer };
                let sent = sender.send(sending, &mut self.random).await;
                unless_lacking_room(sent)?;
            }
        }
        if self.random.one_in(6) {
            give_back(&ledger, receiving, &received);
            session.rollback().await?;
            ledger.end_transaction(transaction, Fate::RolledBack);
            return Ok(());
        }
        if !commit(&self.storm, session, transaction).await? {
            give_back(&ledger, receiving, &received);
        }
        Ok(())
    }
}

/// Notes that all of it goes back, before the broker is told.
fn give_back(ledger: &Ledger, receiving: &mut [Receiving], received: &[Received]) {
    let taken: Vec<Taken> = received.iter().map(|one| one.taken).collect();
    ledger.end(&taken, End::GivenBack);
    for (by, one) in receiving.iter_mut().enumerate() {
        let given_back = received.iter().filter(|received| received.by == by);
        one.returning.expect(given_back.map(|received| (received.taken.name, received.delivery.count())));
    }
}

/// Decision 5: what a consumer gave back comes to it before anything else, in the old order, counted.
#[derive(Debug, Default)]
struct Returning {
    /// With the counts that they had.
    expected: BTreeMap<Name, u32>,
}

impl Returning {
    /// What was given back before and did not come again is still the consumer's: the broker takes it back with this, and keeps it for
    /// the same one.
    fn expect(&mut self, given_back: impl Iterator<Item = (Name, u32)>) {
        self.expected.extend(given_back);
    }

    fn check(&mut self, ledger: &Ledger, holder: &Holder, taken: Taken, count: u32) {
        let name = taken.name;
        if self.expected.is_empty() || taken.is_void {
            return;
        }
        let mut waiting: Vec<Name> = self.expected.keys().copied().collect();
        let Some(before) = self.expected.remove(&name) else {
            self.expected.clear();
            return ledger.fault(
                name,
                &format!("came to {holder} before what that had given back"),
                &waiting,
            );
        };
        if count <= before {
            ledger.fault(
                name,
                &format!("was given back by {holder} with count {before} and has {count}"),
                &[],
            );
        }
        waiting.retain(|other| other.producer == name.producer && *other < name && ledger.has_place(*other));
        if !waiting.is_empty() && ledger.has_place(name) {
            ledger.fault(name, &format!("came back to {holder} before what is older"), &waiting);
        }
    }
}

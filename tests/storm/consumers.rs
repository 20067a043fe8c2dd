//! Who receives, each in its mode, and sends on within its transactions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use corriere::core::AcknowledgeMode::{Auto, Client, DupsOk, Individual, Transacted};
use corriere::core::{self, Connection, ConsumerOptions, Delivery, Error, Session};

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
    queue: usize,
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
        let mut receiving = self.consume(&session).await?;
        let mut returned = Vec::new();
        // One that removes its subscription does so several times in a storm.
        let most = if self.plan.unsubscribes { 10 } else { 200 };
        for _ in 0..self.random.between(most / 10, most) {
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
                (Auto | DupsOk | Transacted, _) => {
                    returned.extend(received.into_iter().map(|one| one.taken));
                    if self.random.one_in(8) {
                        self.be_heard(connection, &session, &mut returned).await?;
                    }
                }
            }
        }
        if self.plan.unsubscribes && !self.is_over() {
            self.unsubscribe(&session, receiving).await?;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        !self.storm.is_consuming()
    }
}

impl Consumer {
    /// A consumer of this session for each of its queues.
    async fn consume(&self, session: &Session) -> Result<Vec<Receiving>, Error> {
        let mut receiving = Vec::new();
        let options = ConsumerOptions { prefetch: Some(self.plan.prefetch), ..ConsumerOptions::default() };
        for queue in self.plan.queues.iter().copied() {
            let consumer = match self.storm.source(queue) {
                (topic, Some(name)) => {
                    let consumer = session.create_durable_consumer_with(topic, name, &options).await?;
                    self.storm.ledger.subscribed(queue);
                    consumer
                }
                (destination, None) => session.create_consumer_with(destination, &options).await?,
            };
            receiving.push(Receiving { queue, consumer, returning: Returning::default() });
        }
        Ok(receiving)
    }

    /// Removes its subscription, once something waits there: that goes with it, and a broker that ends meanwhile or later must not
    /// bring it back.
    async fn unsubscribe(&mut self, session: &Session, receiving: Vec<Receiving>) -> Result<(), Error> {
        for Receiving { queue, consumer, .. } in receiving {
            consumer.close().await?;
            self.wait(500).await;
            let (ledger, source) = (&self.storm.ledger, self.storm.source(queue));
            if let (_, Some(name)) = source {
                ledger.unsubscribing(queue);
                session.unsubscribe(name).await?;
                ledger.unsubscribed(queue);
            }
            self.wait(2_000).await;
        }
        Ok(())
    }

    /// Lets some time go by, up to so many milliseconds.
    async fn wait(&mut self, most: u64) {
        tokio::time::sleep(Duration::from_millis(self.random.between(0, most))).await;
    }

    /// Has the broker hear of all that was returned: it is told what was put off, and answers to something behind that.
    async fn be_heard(
        &self,
        connection: &Connection,
        session: &Session,
        returned: &mut Vec<Taken>,
    ) -> Result<(), Error> {
        session.acknowledge().await?;
        drop(connection.create_session(Auto).await?);
        self.storm.ledger.end(returned, End::Heard);
        returned.clear();
        Ok(())
    }

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
            let taken = ledger.handed_over(holder, one.queue, &delivery, end, transaction);
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
            return recover(&ledger, session, receiving, &received).await;
        }
        let taken = all_taken(&received);
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
                return recover(&ledger, session, receiving, &received).await;
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
        if let Some(to) = self.plan.onward {
            for _ in 0..self.random.between(0, received.len() as u64) {
                let sending =
                    Sending { to, is_persistent: true, transaction: Some(transaction), is_in_line: true };
                let sender = Sender { storm: &self.storm, session, holder, producer: self.producer };
                let sent = sender.send(sending, &mut self.random).await;
                unless_lacking_room(sent)?;
            }
        }
        if self.random.one_in(6) {
            give_back(&ledger, receiving, &received);
            session.rollback().await?;
            ledger.end_transaction(transaction, Fate::RolledBack);
            ledger.given_back(&all_taken(&received));
            return Ok(());
        }
        if !commit(&self.storm, session, transaction).await? {
            give_back(&ledger, receiving, &received);
        }
        Ok(())
    }
}

fn all_taken(received: &[Received]) -> Vec<Taken> {
    received.iter().map(|one| one.taken).collect()
}

/// Gives back all that was received.
async fn recover(
    ledger: &Ledger,
    session: &Session,
    receiving: &mut [Receiving],
    received: &[Received],
) -> Result<(), Error> {
    give_back(ledger, receiving, received);
    session.recover().await?;
    ledger.given_back(&all_taken(received));
    Ok(())
}

/// Notes that all of it goes back, before the broker is told. What is redelivered no more does not come again.
fn give_back(ledger: &Ledger, receiving: &mut [Receiving], received: &[Received]) {
    ledger.end(&all_taken(received), End::GivenBack);
    for (by, one) in receiving.iter_mut().enumerate() {
        let given_back = received.iter().filter(|received| received.by == by && !received.taken.is_last);
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
            if taken.is_last {
                // It was to die, unless its commit failed for want of room, which counts for nothing.
                return;
            }
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

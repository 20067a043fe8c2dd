//! Sends, receives, acknowledgements, commits and handlers that are dropped at random: nothing is lost, nothing is
//! settled twice, and what a transaction sends and receives stays together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use corriere_broker::Broker;
use corriere_core::AcknowledgeMode::{self, Auto, Client, Transacted};
use corriere_core::provider::{Cause, ProviderError};
use corriere_core::{Consumer, Delivery, Destination, Error, Message, Release, SendOptions, Session};
use tokio::task::{JoinError, JoinSet};

use crate::support::{Cut, Random, broker, connect, cut, for_seeds};

const PRODUCERS: u64 = 3;
const MESSAGES: u64 = 40;
/// Some thirty messages, so that sends have to wait.
const MEMORY: u64 = 16_000;

/// A message, as its text has it: who sent it and its number there.
type Name = (u64, u64);

#[test]
fn nothing_is_lost_or_settled_twice_when_futures_are_dropped_where_they_wait() {
    for_seeds(60, Duration::from_secs(12), |seed| run(seed, 4));
}

#[test]
fn one_consumer_sees_each_producers_messages_in_order_whatever_is_dropped() {
    for_seeds(30, Duration::from_secs(8), |seed| run(seed, 1));
}

/// What is known of the messages.
#[derive(Debug, Default)]
struct Ledger {
    /// Certainly in the queue.
    sent: BTreeSet<Name>,
    /// Sends that were dropped: in the queue or not.
    perhaps_sent: BTreeSet<Name>,
    /// Commits that were dropped: all of each or none of it.
    perhaps_together: Vec<Vec<Name>>,
    /// Certainly settled, other than with a transaction.
    settled: BTreeSet<Name>,
    /// Certainly settled with a transaction, which sent it on.
    committed: BTreeSet<Name>,
    /// Received in a transaction whose commit was dropped.
    perhaps_committed: BTreeSet<Name>,
    /// What came out of the transactions.
    sent_on: BTreeSet<Name>,
    /// The last that came for the first time, by producer; only with a single consumer.
    last_first: Option<BTreeMap<u64, u64>>,
}

impl Ledger {
    fn received(&mut self, delivery: &Delivery) -> Name {
        let name = name(delivery);
        let is_over = self.settled.contains(&name) || self.committed.contains(&name);
        assert!(!is_over, "{name:?} came again although it was settled");
        if let Some(last) = self.last_first.as_mut().filter(|_| delivery.count() == 1) {
            let before = last.insert(name.0, name.1);
            assert!(before.is_none_or(|before| before < name.1), "{name:?} came after {before:?}");
        }
        name
    }

    fn settle(&mut self, names: impl IntoIterator<Item = Name>) {
        for name in names {
            assert!(self.settled.insert(name), "{name:?} was settled twice");
        }
    }
}

fn name(message: &Message) -> Name {
    let (producer, number) = message.as_text().unwrap().unwrap().split_once(' ').unwrap();
    (producer.parse().unwrap(), number.parse().unwrap())
}

fn message(name: Name) -> Message {
    Message::text(format!("{} {}", name.0, name.1))
}

/// One of the tasks of a case.
#[derive(Clone)]
struct Actor {
    broker: Broker,
    ledger: Arc<Mutex<Ledger>>,
    random: Random,
    queue: Destination,
    out: Destination,
    /// Producers at work.
    producing: Arc<AtomicU64>,
}

async fn run(seed: u64, consumers: u64) {
    let mut random = Random::new(seed);
    let broker = broker(MEMORY);
    let ledger: Arc<Mutex<Ledger>> = Arc::default();
    ledger.lock().unwrap().last_first = (consumers == 1).then(BTreeMap::new);
    let actor = Actor {
        broker: broker.clone(),
        ledger: Arc::clone(&ledger),
        random: random.fork(),
        queue: Destination::queue("in").unwrap(),
        out: Destination::queue("out").unwrap(),
        producing: Arc::new(AtomicU64::new(PRODUCERS)),
    };
    let new = |random: &mut Random| Actor { random: random.fork(), ..actor.clone() };
    let mut tasks = JoinSet::new();
    for producer in 0..PRODUCERS {
        tasks.spawn(new(&mut random).produce(producer));
    }
    for _ in 0..consumers {
        tasks.spawn(new(&mut random).consume());
    }
    tasks.spawn(new(&mut random).collect());
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    check(&broker, &actor.queue, &actor.out, &ledger.lock().unwrap());
}

fn check(broker: &Broker, queue: &Destination, out: &Destination, ledger: &Ledger) {
    let all: BTreeSet<Name> = ledger.settled.union(&ledger.sent_on).copied().collect();
    assert_eq!(all.len(), ledger.settled.len() + ledger.sent_on.len(), "settled, and in a transaction too");
    assert!(ledger.sent.is_subset(&all), "lost: {:?}", ledger.sent.difference(&all));
    assert!(ledger.committed.is_subset(&ledger.sent_on), "committed and not sent on");
    for name in ledger.sent_on.difference(&ledger.committed) {
        assert!(ledger.perhaps_committed.contains(name), "{name:?} was sent on without a commit");
    }
    let mut possible: BTreeSet<Name> = ledger.sent.union(&ledger.perhaps_sent).copied().collect();
    for together in &ledger.perhaps_together {
        let there = together.iter().filter(|name| all.contains(name)).count();
        assert!(there == 0 || there == together.len(), "half of a transaction: {together:?}");
        possible.extend(together);
    }
    assert!(all.is_subset(&possible), "made up: {:?}", all.difference(&possible));
    for destination in [queue, out] {
        let counts = broker.counts(destination).unwrap_or_default();
        assert!(counts.are_conserved(), "{destination}: {counts:?}");
        assert_eq!((counts.pending, counts.in_flight, counts.dead_lettered), (0, 0, 0), "{destination}");
        let expected = if destination == queue { all.len() } else { ledger.sent_on.len() };
        assert_eq!(
            (counts.enqueued, counts.acknowledged),
            (expected as u64, expected as u64),
            "{destination}"
        );
    }
    assert_eq!(broker.memory_used(), 0);
}

impl Actor {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // What another task found wrong is that task's to report.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn options(&mut self) -> SendOptions {
        SendOptions { deadline: Some(Duration::from_millis(self.random.below(30))), ..SendOptions::default() }
    }

    /// Whether everything that was sent is settled.
    fn is_over(&self) -> bool {
        let is_empty = |destination| self.broker.counts(destination).unwrap_or_default().pending == 0;
        // A dropped send may still wait for memory, and so stand in no queue yet.
        self.producing.load(Ordering::Acquire) == 0
            && is_empty(&self.queue)
            && is_empty(&self.out)
            && self.broker.memory_used() == 0
    }

    /// A session on a connection of its own, even if it takes several tries.
    async fn session(&mut self, mode: AcknowledgeMode) -> Session {
        let connection = connect(&self.broker).await;
        loop {
            if let Cut::Done(session) = cut(&mut self.random, connection.create_session(mode)).await {
                return session.unwrap();
            }
        }
    }

    async fn produce(mut self, producer: u64) {
        let session = self.session(if producer.is_multiple_of(2) { Auto } else { Transacted }).await;
        let mut next = 1;
        while next <= MESSAGES {
            let batch = (1 + self.random.below(4)).min(MESSAGES + 1 - next);
            let names: Vec<Name> = (next..next + batch).map(|number| (producer, number)).collect();
            next += batch;
            if session.is_transacted() {
                while !self.send_together(&session, &names).await {}
            } else {
                for name in names {
                    self.send_one(&session, name).await;
                }
            }
        }
        drop(session);
        self.producing.fetch_sub(1, Ordering::AcqRel);
    }

    async fn send_one(&mut self, session: &Session, name: Name) {
        loop {
            let (message, options) = (message(name), self.options());
            match cut(&mut self.random, session.send(&self.queue, &message, &options)).await {
                Cut::Done(Ok(_)) => {
                    self.ledger().sent.insert(name);
                    return;
                }
                Cut::Dropped => {
                    self.ledger().perhaps_sent.insert(name);
                    return;
                }
                Cut::Done(Err(error)) => is_full(&error),
                Cut::NeverPolled => {}
            }
        }
    }

    /// Sends within the session's transaction; whether that can still be committed.
    async fn send_within(&mut self, session: &Session, to: &Destination, name: Name) -> bool {
        loop {
            let (message, options) = (message(name), self.options());
            match cut(&mut self.random, session.send(to, &message, &options)).await {
                Cut::Done(Ok(_)) => return true,
                Cut::Done(Err(error)) => {
                    is_full(&error);
                    return false;
                }
                Cut::Dropped => return false,
                Cut::NeverPolled => {}
            }
        }
    }

    /// Commits; what is known of the outcome.
    async fn commit(&mut self, session: &Session, is_whole: bool) -> Option<bool> {
        loop {
            match cut(&mut self.random, session.commit()).await {
                Cut::Done(Ok(())) => {
                    assert!(is_whole, "a transaction was committed of which a send had failed");
                    return Some(true);
                }
                Cut::Done(Err(Error::TransactionRolledBack { reason })) => {
                    assert!(!is_whole, "{reason}");
                    return Some(false);
                }
                Cut::Done(Err(error)) => panic!("{error}"),
                Cut::Dropped if is_whole => return None,
                Cut::Dropped => return Some(false),
                Cut::NeverPolled => {}
            }
        }
    }

    async fn send_together(&mut self, session: &Session, names: &[Name]) -> bool {
        let queue = self.queue.clone();
        let mut is_whole = true;
        for name in names {
            is_whole &= self.send_within(session, &queue, *name).await;
        }
        if self.random.once_in(5) && cut(&mut self.random, session.rollback()).await.was_polled() {
            return false;
        }
        let outcome = self.commit(session, is_whole).await;
        let mut ledger = self.ledger();
        match outcome {
            Some(true) => ledger.sent.extend(names),
            None => ledger.perhaps_together.push(names.to_vec()),
            Some(false) => return false,
        }
        true
    }

    async fn consume(mut self) {
        while !self.is_over() {
            let kind = self.random.below(4);
            let mode = [Auto, Client, Transacted, Auto][kind as usize];
            let session = self.session(mode).await;
            let prefetch = self.random.pick(&[0, 1, 3, 20]);
            let creation = session.create_consumer_with_prefetch(&self.queue, prefetch);
            let Cut::Done(consumer) = cut(&mut self.random, creation).await else { continue };
            let consumer = consumer.unwrap();
            let turns = 1 + self.random.below(30);
            match kind {
                0 => self.receive(&consumer, turns).await,
                1 => self.acknowledge(&session, &consumer, turns).await,
                2 => self.send_on(&session, &consumer, turns).await,
                _ => self.handle(&session, &consumer, turns).await,
            }
            match self.random.below(4) {
                0 => drop(cut(&mut self.random, consumer.close()).await),
                1 => drop(cut(&mut self.random, session.close()).await),
                2 => drop(cut(&mut self.random, session.connection().close()).await),
                _ => {}
            }
        }
    }

    async fn next(&mut self, consumer: &Consumer) -> Option<(Delivery, Name)> {
        let timeout = Duration::from_millis(self.random.below(4));
        let received = match self.random.below(3) {
            0 => cut(&mut self.random, consumer.receive_no_wait()).await,
            _ => cut(&mut self.random, consumer.receive_timeout(timeout)).await,
        };
        self.note(received)
    }

    fn note(&self, received: Cut<Result<Option<Delivery>, Error>>) -> Option<(Delivery, Name)> {
        let Cut::Done(delivery) = received else { return None };
        let delivery = delivery.unwrap()?;
        let name = self.ledger().received(&delivery);
        Some((delivery, name))
    }

    async fn receive(&mut self, consumer: &Consumer, turns: u64) {
        for _ in 0..turns {
            if let Some((_, name)) = self.next(consumer).await {
                self.ledger().settle([name]);
            }
        }
    }

    async fn acknowledge(&mut self, session: &Session, consumer: &Consumer, turns: u64) {
        let mut in_hand: Vec<(Delivery, Name)> = Vec::new();
        for _ in 0..turns {
            // In CLIENT the window stays shut while too much is unacknowledged.
            in_hand.extend(self.next(consumer).await);
            match self.random.below(8) {
                0..=2 if cut(&mut self.random, session.acknowledge()).await.was_polled() => {
                    self.ledger().settle(in_hand.drain(..).map(|(_, name)| name));
                }
                3 if cut(&mut self.random, session.recover()).await.was_polled() => in_hand.clear(),
                4 if !in_hand.is_empty() => {
                    let index = self.random.below(in_hand.len() as u64) as usize;
                    let discards = self.random.once_in(2);
                    let release = if discards { Release::Discard } else { redeliver() };
                    let released = cut(&mut self.random, in_hand[index].0.release(release)).await;
                    if released.was_polled() {
                        let (_, name) = in_hand.remove(index);
                        if discards {
                            self.ledger().settle([name]);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    async fn send_on(&mut self, session: &Session, consumer: &Consumer, turns: u64) {
        let out = self.out.clone();
        let mut in_hand: Vec<Name> = Vec::new();
        let mut is_whole = true;
        for _ in 0..turns {
            if let Some((_, name)) = self.next(consumer).await {
                in_hand.push(name);
                is_whole &= self.send_within(session, &out, name).await;
            }
            match self.random.below(6) {
                0 if cut(&mut self.random, session.rollback()).await.was_polled() => {
                    in_hand.clear();
                    is_whole = true;
                }
                1..=2 => {
                    // What is committed is noted before anybody can see that it does not come again.
                    let outcome = self.commit(session, is_whole).await;
                    let mut ledger = self.ledger();
                    match outcome {
                        Some(true) => ledger.committed.extend(in_hand.drain(..)),
                        None => ledger.perhaps_committed.extend(in_hand.drain(..)),
                        Some(false) => in_hand.clear(),
                    }
                    is_whole = true;
                }
                _ => {}
            }
        }
    }

    /// Handlers in tasks of their own, which are aborted at random.
    async fn handle(&mut self, session: &Session, consumer: &Consumer, turns: u64) {
        for _ in 0..turns {
            let timeout = Duration::from_millis(self.random.below(4));
            let taken = cut(&mut self.random, consumer.take_timeout(timeout)).await;
            let Some((delivery, name)) = self.note(taken) else { continue };
            let (steps, fails) = (self.random.below(3), self.random.once_in(4));
            let settles = Arc::new(AtomicBool::new(false));
            let handler = tokio::spawn({
                let (session, settles) = (session.clone(), Arc::clone(&settles));
                async move {
                    session
                        .run_handler(async {
                            for _ in 0..steps {
                                tokio::task::yield_now().await;
                            }
                            // From here to the submission of the word there is no wait at which it could be dropped.
                            settles.store(true, Ordering::SeqCst);
                            if fails {
                                delivery.release(redeliver()).await.unwrap();
                            } else {
                                delivery.acknowledge().await.unwrap();
                            }
                        })
                        .await;
                }
            });
            if self.random.once_in(3) {
                for _ in 0..self.random.below(4) {
                    tokio::task::yield_now().await;
                }
                handler.abort();
            }
            let ended = handler.await;
            assert!(ended.as_ref().err().is_none_or(JoinError::is_cancelled), "{ended:?}");
            match (settles.load(Ordering::SeqCst), fails) {
                (true, false) => self.ledger().settle([name]),
                (true, true) => {}
                // Its session is dropped with it in hand.
                (false, _) => return,
            }
        }
    }

    /// Takes what the transactions sent on.
    async fn collect(mut self) {
        let session = self.session(Auto).await;
        let consumer = session.create_consumer(&self.out).await.unwrap();
        while !self.is_over() {
            if let Some(delivery) = consumer.receive_timeout(Duration::from_millis(2)).await.unwrap() {
                let name = name(&delivery);
                assert!(self.ledger().sent_on.insert(name), "{name:?} was sent on twice");
            }
        }
    }
}

fn redeliver() -> Release {
    Release::Redeliver { delay: None, cause: Cause::failure("again") }
}

fn is_full(error: &Error) {
    assert!(matches!(error, Error::Provider(ProviderError::MemoryFull { .. })), "{error}");
}

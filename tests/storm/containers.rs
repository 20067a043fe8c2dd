//! Listener containers: their listener fails now and then in every way, sends on within its transaction, and notes what it was
//! given; their observer notes what became of it. They connect again by themselves.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use corriere::beans::Beans;
use corriere::containers::{ContainerSettings, DeliveryEnd, DeliveryObserver, EndKind, ListenerContainer};
use corriere::core::{ConnectionId, Delivery, MessageId};
use corriere::listener::{Acknowledge, Concurrency};
use corriere::prelude::{Bean, ListenerError, jms_listener};
use corriere::templates::JsonConverter;

use crate::clients::Client;
use crate::ledger::{End, Fate, Holder, Ledger, Sending, Taken, TransactionNumber};
use crate::plan::ContainerPlan;
use crate::producers::Sender;
use crate::storm::Storm;
use corriere_tests::random::Random;

/// What the listener of one container works with.
#[derive(Debug)]
pub(crate) struct Post {
    storm: Arc<Storm>,
    who: String,
    /// Its number as a producer of what it sends on.
    producer: usize,
    plan: ContainerPlan,
    state: Mutex<PostState>,
}

#[derive(Debug)]
struct PostState {
    random: Random,
    /// A container has one connection after the other.
    holders: HashMap<ConnectionId, Arc<Holder>>,
    /// Which of them are not lost as far as the container was told.
    current: Vec<Arc<Holder>>,
    runs: Vec<Run>,
}

/// A message that the listener was given.
#[derive(Debug)]
struct Run {
    message_id: Option<MessageId>,
    count: u32,
    taken: Taken,
    transaction: Option<TransactionNumber>,
}

/// How a run of the listener is to end.
#[derive(Clone, Copy, Debug)]
enum Course {
    Well,
    Failing,
    Panicking,
    DeadLetter,
}

#[jms_listener(queue = "set.by.the.plan")]
async fn on_message(delivery: Delivery, post: Bean<Arc<Post>>) -> Result<(), ListenerError> {
    post.run(&delivery).await
}

/// Starts the container of this plan.
pub(crate) fn start(
    storm: &Arc<Storm>,
    client: &Client,
    plan: &ContainerPlan,
    producer: usize,
    random: Random,
) -> (ListenerContainer, Arc<Post>) {
    let state = PostState { random, holders: HashMap::new(), current: Vec::new(), runs: Vec::new() };
    let post = Arc::new(Post {
        storm: Arc::clone(storm),
        who: client.who().to_owned(),
        producer,
        plan: plan.clone(),
        state: Mutex::new(state),
    });
    let mut beans = Beans::new();
    beans.add("post", Bean::new(Arc::clone(&post))).unwrap();
    let (destination, subscription) = storm.source(plan.queue);
    let settings = ContainerSettings {
        subscription: subscription.map(Into::into),
        acknowledge: plan.acknowledge,
        concurrency: format!("{0}-{0}", plan.workers).parse::<Concurrency>().unwrap(),
        prefetch: plan.prefetch,
        beans: Arc::new(beans),
        observer: Some(Arc::clone(&post) as _),
        back_off: Duration::from_millis(10),
        maximum_back_off: Duration::from_millis(100),
        ..ContainerSettings::new(client.factory(), destination.clone(), Arc::new(JsonConverter::default()))
    };
    (ListenerContainer::start(on_message::DEF, settings).unwrap(), post)
}

impl Post {
    /// To be called before the container's connection is cut; whether it has one that its listener was given messages over.
    pub(crate) fn lose(&self) -> bool {
        let holders = std::mem::take(&mut self.state().current);
        holders.iter().for_each(|holder| holder.lose());
        holders.iter().any(|holder| self.ledger().life() == Some(holder.life))
    }

    fn ledger(&self) -> &Ledger {
        &self.storm.ledger
    }

    async fn run(&self, delivery: &Delivery) -> Result<(), ListenerError> {
        let transaction = (self.plan.acknowledge == Acknowledge::Transacted).then(|| self.ledger().begin());
        let holder = self.state().holder_of(delivery, &self.who, self.ledger());
        let taken = self.ledger().handed_over(&holder, self.plan.queue, delivery, End::Held, transaction);
        let message_id = delivery.headers().message_id.clone();
        let run = Run { message_id, count: delivery.count(), taken, transaction };
        let (course, sends, acknowledges, mut random) = {
            let mut state = self.state();
            state.runs.push(run);
            let course = match state.random.between(1, 100) {
                1..=8 => Course::Failing,
                9..=11 => Course::Panicking,
                12 => Course::DeadLetter,
                _ => Course::Well,
            };
            let random = Random::new(state.random.next());
            (course, state.random.between(0, 2), state.random.one_in(2), random)
        };
        if let (Some(to), Some(_)) = (self.plan.onward, transaction) {
            for _ in 0..sends {
                let sending =
                    Sending { to, is_persistent: true, transaction, is_in_line: self.plan.workers == 1 };
                let (session, producer) = (delivery.session(), self.producer);
                let sender = Sender { storm: &self.storm, session, holder: &holder, producer };
                let sent = sender.send(sending, &mut random).await;
                if let Err(error) = sent {
                    self.ledger().end(&[taken], End::GivenBack);
                    return Err(error.into());
                }
            }
        }
        // The container settles what is returned here, so it may have done so before its observer is told.
        let end = match course {
            Course::Well => End::Settling,
            Course::Failing | Course::Panicking => End::GivenBack,
            Course::DeadLetter => End::DeadLettering,
        };
        match transaction.filter(|_| end == End::Settling) {
            Some(transaction) => self.ledger().end_transaction(transaction, Fate::InDoubt),
            None => self.ledger().end(&[taken], end),
        }
        match course {
            Course::Well if self.acknowledges(acknowledges) => {
                delivery.acknowledge().await?;
                self.ledger().end(&[taken], End::Settled);
                Ok(())
            }
            Course::Well => Ok(()),
            Course::Failing => Err(ListenerError::redeliver("it was to fail")),
            // Without the hook that would print it.
            Course::Panicking => std::panic::resume_unwind(Box::new("it was to panic")),
            Course::DeadLetter => Err(ListenerError::dead_letter("it was to die")),
        }
    }

    /// Whether its listener acknowledges by itself: always where the container does not, and where both may, by chance.
    fn acknowledges(&self, chance: bool) -> bool {
        match self.plan.acknowledge {
            Acknowledge::Manual => true,
            Acknowledge::Client | Acknowledge::Individual => chance,
            Acknowledge::Auto | Acknowledge::DupsOk | Acknowledge::Transacted => false,
        }
    }

    /// What a message comes to that the container has settled. Where that is put off, nobody hears of it.
    fn settled(&self) -> End {
        match self.plan.acknowledge {
            Acknowledge::Auto if self.plan.access.is_optimized => End::Returned,
            Acknowledge::DupsOk => End::Returned,
            _ => End::Settled,
        }
    }

    fn state(&self) -> MutexGuard<'_, PostState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PostState {
    fn holder_of(&mut self, delivery: &Delivery, who: &str, ledger: &Ledger) -> Arc<Holder> {
        let connection = delivery.session().connection().id().clone();
        let current = &mut self.current;
        let holder = self.holders.entry(connection).or_insert_with(|| {
            let life = ledger.life();
            let holder = Arc::new(Holder::new(who.to_owned(), life.unwrap_or_default()));
            current.push(Arc::clone(&holder));
            holder
        });
        Arc::clone(holder)
    }
}

impl DeliveryObserver for Post {
    fn ended(&self, end: &DeliveryEnd) {
        let run = {
            let mut state = self.state();
            let is_it = |run: &Run| run.message_id == end.message_id && run.count == end.delivery_count;
            let Some(index) = state.runs.iter().position(is_it) else { return };
            let run = state.runs.remove(index);
            // Of two runs of one delivery, before a connection was lost and after it, nobody can tell which one it is.
            let others = state.runs.len();
            state.runs.retain(|run| !is_it(run));
            if state.runs.len() < others {
                return;
            }
            run
        };
        let (ledger, taken) = (self.ledger(), [run.taken]);
        match (end.kind, run.transaction) {
            (EndKind::Settled, Some(transaction)) => ledger.end_transaction(transaction, Fate::Committed),
            (EndKind::Settled, None) => ledger.end(&taken, self.settled()),
            (EndKind::Redelivered, Some(transaction)) => {
                ledger.end_transaction(transaction, Fate::RolledBack);
            }
            (EndKind::Redelivered, None) => ledger.end(&taken, End::GivenBack),
            (EndKind::DeadLettered, transaction) => {
                if let Some(transaction) = transaction {
                    ledger.end_transaction(transaction, Fate::RolledBack);
                }
                ledger.end(&taken, End::DeadLettered);
            }
            // The broker did not answer: it stays in doubt, as it was noted before the listener returned.
            _ => {}
        }
    }
}

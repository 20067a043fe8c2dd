//! What a store was asked to keep, replayed batch by batch: the plainest store there could be.
//!
//! Whatever dies and whatever is torn, what a journal brings back is what the first so many batches had made of it, each
//! as a whole: no fewer than it had confirmed, and no more than it was given.

mod comparing;

use std::collections::BTreeMap;
use std::sync::Arc;

use corriere_broker::store::{
    Arrival, DeliveryState, PreparedTransaction, Recipient, Recovered, RecoveredMessage, RecoveredQueue,
    RecoveredSubscription, Removal, StoreOperation, StoreTransaction, StoredId, SubscriptionName, Totals,
};
use corriere_core::id::Xid;
use corriere_core::message::Priority;
use corriere_core::{Destination, Message, MessageId, Timestamp};

/// The state after some batches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    queues: BTreeMap<Destination, KeptQueue>,
    /// In the order of their making.
    subscriptions: Vec<KeptSubscription>,
    transactions: BTreeMap<StoreTransaction, Vec<Staged>>,
    last_life: u64,
    /// In the order in which they were prepared.
    prepared: Vec<Xid>,
    producers: BTreeMap<String, u64>,
    last_id: StoredId,
}

#[derive(Clone, Debug, Default)]
struct KeptQueue {
    totals: Totals,
    messages: Vec<KeptMessage>,
}

#[derive(Clone, Debug)]
struct KeptSubscription {
    name: SubscriptionName,
    /// It may end, and another of its name be made.
    life: u64,
    topic: Destination,
    no_local: bool,
    kept: KeptQueue,
}

/// What a transaction is to do.
#[derive(Clone, Debug)]
enum Staged {
    Operation(StoreOperation),
    /// A message of a topic was sent: its producer is noted.
    Sent(Arc<Message>),
    /// It goes to a subscription, if that is there in the same life.
    Copy {
        stored: StoredId,
        name: SubscriptionName,
        life: u64,
        message: Arc<Message>,
    },
}

/// A message on its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptMessage {
    pub(crate) stored: StoredId,
    pub(crate) id: MessageId,
    pub(crate) priority: u8,
    pub(crate) expiration: Option<Timestamp>,
    pub(crate) size: u64,
    pub(crate) state: DeliveryState,
}

impl Kept {
    pub(crate) fn apply(&mut self, batch: &[StoreOperation]) {
        for operation in batch {
            self.apply_one(operation);
        }
    }

    /// Of a batch that was refused nothing is done, and what it was to end is over.
    pub(crate) fn refuse(&mut self, batch: &[StoreOperation]) {
        for operation in batch {
            match operation {
                StoreOperation::Commit(transaction) => drop(self.end(transaction)),
                StoreOperation::Prepare(xid) => drop(self.end(&StoreTransaction::Distributed(xid.clone()))),
                _ => {}
            }
        }
    }

    fn apply_one(&mut self, operation: &StoreOperation) {
        match operation {
            StoreOperation::Append { stored, .. } => self.last_id = self.last_id.max(*stored),
            StoreOperation::Publish { stored, subscriptions, .. } => {
                self.last_id = self.last_id.max(stored.with(subscriptions.len().saturating_sub(1)));
            }
            _ => {}
        }
        match operation {
            StoreOperation::Append { transaction: Some(transaction), .. }
            | StoreOperation::Remove { transaction: Some(transaction), .. } => {
                self.transactions
                    .entry(transaction.clone())
                    .or_default()
                    .push(Staged::Operation(operation.clone()));
            }
            StoreOperation::Publish { stored, subscriptions, message, transaction, .. } => {
                let staged = self.published(*stored, subscriptions, message);
                match transaction {
                    Some(transaction) => {
                        self.transactions.entry(transaction.clone()).or_default().extend(staged);
                    }
                    None => staged.into_iter().for_each(|staged| self.take_effect(staged)),
                }
            }
            StoreOperation::CreateSubscription { subscription: name, topic, no_local } => {
                self.subscriptions.retain(|kept| kept.name != *name);
                self.last_life += 1;
                self.subscriptions.push(KeptSubscription {
                    name: name.clone(),
                    life: self.last_life,
                    topic: topic.clone(),
                    no_local: *no_local,
                    kept: KeptQueue::default(),
                });
            }
            StoreOperation::RemoveSubscription(name) => self.subscriptions.retain(|kept| kept.name != *name),
            StoreOperation::Append { stored, queue, arrival, message, transaction: None } => {
                if *arrival == Arrival::Sent {
                    self.note_producer(message);
                }
                let queue = self.queues.entry(queue.clone()).or_default();
                queue.totals.enqueued += u64::from(*arrival == Arrival::Sent);
                queue.messages.push(KeptMessage::of(*stored, message));
            }
            StoreOperation::Remove { stored, reason, transaction: None } => {
                let with = self.subscriptions.iter_mut().map(|subscription| &mut subscription.kept);
                for queue in self.queues.values_mut().chain(with) {
                    let before = queue.messages.len();
                    queue.messages.retain(|message| message.stored != *stored);
                    if queue.messages.len() < before {
                        queue.totals.acknowledged += u64::from(*reason == Removal::Acknowledged);
                        queue.totals.dead_lettered += u64::from(*reason == Removal::DeadLettered);
                    }
                }
            }
            StoreOperation::DeliveryState { stored, state } => {
                for message in self.messages_mut().filter(|message| message.stored == *stored) {
                    message.state = *state;
                }
            }
            StoreOperation::Prepare(xid) => {
                self.transactions.entry(StoreTransaction::Distributed(xid.clone())).or_default();
                self.prepared.push(xid.clone());
            }
            StoreOperation::Commit(transaction) => {
                for staged in self.end(transaction) {
                    self.take_effect(staged);
                }
            }
            StoreOperation::Rollback(transaction) => drop(self.end(transaction)),
            other => panic!("the harness knows no {other:?}"),
        }
    }

    /// What a message does that is sent to subscriptions.
    fn published(
        &self,
        stored: StoredId,
        subscriptions: &[SubscriptionName],
        message: &Arc<Message>,
    ) -> Vec<Staged> {
        let copies = subscriptions.iter().enumerate().filter_map(|(place, name)| {
            let life = self.subscriptions.iter().find(|kept| kept.name == *name)?.life;
            let (stored, name, message) = (stored.with(place), name.clone(), Arc::clone(message));
            Some(Staged::Copy { stored, name, life, message })
        });
        std::iter::once(Staged::Sent(Arc::clone(message))).chain(copies).collect()
    }

    fn take_effect(&mut self, staged: Staged) {
        match staged {
            Staged::Operation(operation) => self.apply_one(&alone(operation)),
            Staged::Sent(message) => self.note_producer(&message),
            Staged::Copy { stored, life, message, .. } => {
                if let Some(with) = self.subscriptions.iter_mut().find(|kept| kept.life == life) {
                    with.kept.totals.enqueued += 1;
                    with.kept.messages.push(KeptMessage::of(stored, &message));
                }
            }
        }
    }

    fn note_producer(&mut self, message: &Message) {
        let id = message.headers().message_id.as_ref().expect("a message with an id");
        let last = self.producers.entry(id.producer.to_string()).or_default();
        *last = (*last).max(id.sequence);
    }

    fn end(&mut self, transaction: &StoreTransaction) -> Vec<Staged> {
        if let StoreTransaction::Distributed(xid) = transaction {
            self.prepared.retain(|prepared| prepared != xid);
        }
        self.transactions.remove(transaction).unwrap_or_default()
    }

    fn is_there(&self, life: u64) -> bool {
        self.subscriptions.iter().any(|kept| kept.life == life)
    }

    /// What is left once the process has ended: transactions that were not prepared are over.
    pub(crate) fn restart(&mut self) {
        let Self { transactions, prepared, .. } = self;
        transactions.retain(|transaction, _| match transaction {
            StoreTransaction::Local(..) => false,
            StoreTransaction::Distributed(xid) => prepared.contains(xid),
        });
    }

    /// Takes over what was counted for those that were in the hands of the application, and says how many these are.
    pub(crate) fn count_attempts(&mut self, recovered: &Recovered) -> u64 {
        let states: BTreeMap<_, _> = recovered
            .queues
            .iter()
            .flat_map(|queue| &queue.messages)
            .chain(recovered.subscriptions.iter().flat_map(|found| &found.messages))
            .map(|message| (message.stored, message.state))
            .collect();
        let mut counted = 0;
        for message in self.messages_mut() {
            if let Some(state) = states.get(&message.stored) {
                counted += u64::from(*state != message.state);
                message.state = *state;
            }
        }
        counted
    }

    /// The message of this name, on a queue or sent in a transaction that waits.
    pub(crate) fn id_of(&self, wanted: StoredId) -> Option<MessageId> {
        let with = self.subscriptions.iter().map(|subscription| &subscription.kept);
        let on_queues = self.queues.values().chain(with).flat_map(|queue| &queue.messages);
        let on_queue =
            on_queues.filter(|message| message.stored == wanted).map(|message| message.id.clone()).next();
        on_queue.or_else(|| {
            self.transactions.values().flatten().find_map(|operation| match operation {
                Staged::Operation(StoreOperation::Append { stored, message, .. })
                | Staged::Copy { stored, message, .. }
                    if *stored == wanted =>
                {
                    message.headers().message_id.clone()
                }
                _ => None,
            })
        })
    }
}

/// The same outside of a transaction.
fn alone(operation: StoreOperation) -> StoreOperation {
    match operation {
        StoreOperation::Append { stored, queue, arrival, message, transaction: _ } => {
            StoreOperation::Append { stored, queue, arrival, message, transaction: None }
        }
        StoreOperation::Remove { stored, reason, transaction: _ } => {
            StoreOperation::Remove { stored, reason, transaction: None }
        }
        other => other,
    }
}

impl KeptMessage {
    fn of(stored: StoredId, message: &Message) -> Self {
        let headers = message.headers();
        Self {
            stored,
            id: headers.message_id.clone().expect("a message with an id"),
            priority: headers.priority.level(),
            expiration: headers.expiration,
            size: message.size() as u64,
            state: DeliveryState::default(),
        }
    }

    fn recovered(&self) -> RecoveredMessage {
        RecoveredMessage {
            stored: self.stored,
            priority: Priority::new(self.priority).expect("0 to 9"),
            expiration: self.expiration,
            size: self.size,
            state: self.state,
        }
    }
}

/// What the stand-in needs, to be a store and to be a bad one.
impl Kept {
    /// As a store would bring it back.
    pub(crate) fn recovered(&self) -> Recovered {
        let queues = self.queues.iter().map(|(destination, queue)| RecoveredQueue {
            destination: destination.clone(),
            totals: queue.totals,
            messages: queue.messages.iter().map(KeptMessage::recovered).collect(),
        });
        let prepared = self.prepared.iter().map(|xid| {
            let mut branch = PreparedTransaction {
                xid: xid.clone(),
                sends: Vec::new(),
                ids: Vec::new(),
                acknowledged: Vec::new(),
            };
            let name = StoreTransaction::Distributed(xid.clone());
            for operation in self.transactions.get(&name).into_iter().flatten() {
                match operation {
                    Staged::Copy { stored, name, life, message } if self.is_there(*life) => {
                        branch.ids.push(message.headers().message_id.clone());
                        let message = KeptMessage::of(*stored, message).recovered();
                        branch.sends.push((Recipient::Subscription(name.clone()), message));
                    }
                    Staged::Operation(StoreOperation::Append { stored, queue, message, .. }) => {
                        branch.ids.push(message.headers().message_id.clone());
                        let message = KeptMessage::of(*stored, message).recovered();
                        branch.sends.push((queue.clone().into(), message));
                    }
                    Staged::Operation(StoreOperation::Remove { stored, .. }) => {
                        branch.acknowledged.push(*stored);
                    }
                    _ => {}
                }
            }
            branch
        });
        let producers = self.producers.iter().map(|(name, last)| (name.as_str().into(), *last));
        let subscriptions = self.subscriptions.iter().map(|one| RecoveredSubscription {
            subscription: one.name.clone(),
            topic: one.topic.clone(),
            no_local: one.no_local,
            totals: one.kept.totals,
            messages: one.kept.messages.iter().map(KeptMessage::recovered).collect(),
        });
        Recovered {
            queues: queues.collect(),
            subscriptions: subscriptions.collect(),
            prepared: prepared.collect(),
            producers: producers.collect(),
            last_id: self.last_id,
        }
    }

    /// Whether an operation makes another subscription of a name that is there.
    pub(crate) fn is_made_anew_by(&self, operation: &StoreOperation) -> bool {
        matches!(operation, StoreOperation::CreateSubscription { subscription, .. }
            if self.subscriptions.iter().any(|kept| kept.name == *subscription))
    }

    /// A process ended with this attempt noted.
    pub(crate) fn attempt(&mut self, stored: StoredId, delivery: u32) {
        for message in self.messages_mut().filter(|message| message.stored == stored) {
            message.state.failed_deliveries = message.state.failed_deliveries.max(delivery);
        }
    }

    pub(crate) fn double_the_last(&mut self) {
        for queue in self.queues.values_mut() {
            queue.messages.extend(queue.messages.last().cloned());
        }
    }

    pub(crate) fn turn_around(&mut self) {
        self.queues.values_mut().for_each(|queue| queue.messages.reverse());
    }

    pub(crate) fn commit_all(&mut self) {
        for transaction in self.transactions.keys().cloned().collect::<Vec<_>>() {
            self.apply_one(&StoreOperation::Commit(transaction));
        }
    }

    pub(crate) fn forget_prepared(&mut self) {
        self.prepared.clear();
    }

    fn messages_mut(&mut self) -> impl Iterator<Item = &mut KeptMessage> {
        let with = self.subscriptions.iter_mut().map(|subscription| &mut subscription.kept);
        self.queues.values_mut().chain(with).flat_map(|queue| &mut queue.messages)
    }
}

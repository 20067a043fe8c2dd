//! Who takes part in a storm and how, all of it from the seed. What happens when is chance.

use corriere::core::AcknowledgeMode::{self, Auto, Client, DupsOk, Individual, Transacted};
use corriere::listener::Acknowledge;

use corriere_tests::random::Random;

pub(crate) const PRODUCERS: usize = 64;
pub(crate) const CONSUMERS: usize = 64;

/// Queues with many consumers, those that consumers send on to, and those with one consumer.
const SHARED: usize = 6;
const ONWARD: usize = 2;
const LONE: usize = 4;

const TOPICS: usize = 3;
/// Durable subscriptions, each with one consumer, the last ones with a container.
const SUBSCRIPTIONS: usize = 12;

/// How many of the consumers are containers, and how many of these have a durable subscription.
const CONTAINERS: usize = 12;
const SUBSCRIBED_CONTAINERS: usize = 4;

const MODES: [AcknowledgeMode; 5] = [Auto, Client, Transacted, Individual, DupsOk];
const PREFETCHES: [u32; 4] = [0, 1, 10, 100];

/// In the order of the plans: the modes of who has a durable subscription, and whether acknowledgements are put off there on request.
const SUBSCRIBERS: [(AcknowledgeMode, bool); SUBSCRIPTIONS - SUBSCRIBED_CONTAINERS] = [
    (Auto, false),
    (Client, false),
    (Transacted, false),
    (Individual, false),
    (DupsOk, false),
    (Auto, true),
    (DupsOk, true),
    (Transacted, false),
];

/// Which of them are redelivered from once: in CLIENT, INDIVIDUAL and TRANSACTED.
const LIMITED: [usize; 3] = [1, 3, 7];

/// How a client reaches the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Vm,
    Tcp,
}

/// Where a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Queue(usize),
    /// All of its durable subscriptions.
    Topic(usize),
}

/// Where messages wait for consumers: a queue, or a durable subscription, which is one behind a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    /// Of a subscription its own, and that of its client.
    pub(crate) name: String,
    /// What it is a durable subscription to.
    pub(crate) topic: Option<usize>,
    /// Whether it has one consumer, so that the order of each producer's messages is promised.
    pub(crate) is_lone: bool,
    /// How often it redelivers a message before that is a dead letter; `None` for ever.
    pub(crate) maximum_redeliveries: Option<u32>,
}

impl Queue {
    /// Whether what is sent there comes to this queue, which has this number.
    pub(crate) fn is_reached(&self, number: usize, target: Target) -> bool {
        match target {
            Target::Queue(queue) => number == queue,
            Target::Topic(topic) => self.topic == Some(topic),
        }
    }
}

/// How a client connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) transport: Transport,
    /// Whether it asks for acknowledgements that are put off.
    pub(crate) is_optimized: bool,
    pub(crate) maximum_redeliveries: Option<u32>,
    pub(crate) client_id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProducerPlan {
    pub(crate) access: Access,
    pub(crate) to: Target,
    /// Of those that send in transactions every other message is persistent all the same.
    pub(crate) is_persistent: bool,
    /// Whether it sends in transactions, to two destinations, of which this is the other.
    pub(crate) other: Option<Target>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConsumerPlan {
    pub(crate) access: Access,
    pub(crate) mode: AcknowledgeMode,
    pub(crate) prefetch: u32,
    /// One session receives from them all.
    pub(crate) queues: Vec<usize>,
    /// Where it sends on, within its transactions.
    pub(crate) onward: Option<Target>,
    /// Whether it has a queue for itself, so that the broker must know of its end before it comes again.
    pub(crate) is_lone: bool,
    /// Whether it removes its subscription now and then.
    pub(crate) unsubscribes: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContainerPlan {
    pub(crate) access: Access,
    pub(crate) acknowledge: Acknowledge,
    pub(crate) prefetch: u32,
    pub(crate) queue: usize,
    pub(crate) workers: u32,
    pub(crate) onward: Option<Target>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) queues: Vec<Queue>,
    /// The names of the topics.
    pub(crate) topics: Vec<String>,
    pub(crate) producers: Vec<ProducerPlan>,
    pub(crate) consumers: Vec<ConsumerPlan>,
    pub(crate) containers: Vec<ContainerPlan>,
}

impl Plan {
    pub(crate) fn new(seed: u64, transports: &[Transport]) -> Self {
        let mut random = Random::new(seed);
        let mut cast = Cast { random: &mut random, transports };
        let mut consumers = cast.consumers();
        consumers.append(&mut cast.lone_consumers());
        consumers.append(&mut cast.subscribers());
        Self {
            seed,
            queues: queues(),
            topics: (0..TOPICS).map(|number| format!("topic.{number}")).collect(),
            producers: cast.producers(),
            containers: cast.containers(),
            consumers,
        }
    }
}

impl Access {
    pub(crate) fn plain(transport: Transport) -> Self {
        Self { transport, is_optimized: false, maximum_redeliveries: None, client_id: None }
    }

    /// That of the client that has a durable subscription.
    pub(crate) fn to_subscription(transport: Transport, queue: &Queue) -> Self {
        Self {
            maximum_redeliveries: queue.maximum_redeliveries,
            client_id: Some(queue.name.clone()),
            ..Self::plain(transport)
        }
    }
}

/// One queue with one consumer redelivers once, and so does a subscription in each mode that gives back.
fn queues() -> Vec<Queue> {
    let queue = |name, topic, is_lone, is_limited: bool| Queue {
        name,
        topic,
        is_lone,
        maximum_redeliveries: is_limited.then_some(1),
    };
    let shared = (0..SHARED).map(|number| queue(format!("shared.{number}"), None, false, false));
    let onward = (0..ONWARD).map(|number| queue(format!("onward.{number}"), None, false, false));
    let lone = (0..LONE).map(|number| queue(format!("lone.{number}"), None, true, number == 0));
    let subscriptions = (0..SUBSCRIPTIONS).map(|number| {
        let is_limited = LIMITED.contains(&number);
        queue(format!("subscriber.{number}"), Some(number % TOPICS), true, is_limited)
    });
    shared.chain(onward).chain(lone).chain(subscriptions).collect()
}

fn lone(number: usize) -> usize {
    SHARED + ONWARD + number % LONE
}

fn subscription(number: usize) -> usize {
    SHARED + ONWARD + LONE + number
}

/// Who makes the plans.
struct Cast<'a> {
    random: &'a mut Random,
    transports: &'a [Transport],
}

impl Cast<'_> {
    fn transport(&self, number: usize) -> Transport {
        self.transports[number % self.transports.len()]
    }

    fn shared(&mut self) -> usize {
        self.random.next() as usize % SHARED
    }

    fn topic(&mut self) -> Target {
        Target::Topic(self.random.next() as usize % TOPICS)
    }

    fn onward(&mut self) -> Target {
        Target::Queue(SHARED + self.random.next() as usize % ONWARD)
    }

    /// Every eighth message without a store, every fourth in a transaction; the first three for each queue with one consumer, then
    /// four for each topic. Half of the transactions are to a topic as well.
    fn producers(&mut self) -> Vec<ProducerPlan> {
        let producer = |number: usize| ProducerPlan {
            access: Access::plain(self.transport(number / 3)),
            to: match number {
                ..12 => Target::Queue(lone(number)),
                12..24 => Target::Topic(number % TOPICS),
                _ => Target::Queue(self.shared()),
            },
            is_persistent: number % 8 != 5 && number % 16 != 11,
            other: match number % 8 {
                3 => Some(Target::Queue(self.shared())),
                7 if (12..24).contains(&number) => Some(Target::Queue(self.shared())),
                7 => Some(self.topic()),
                _ => None,
            },
        };
        (0..PRODUCERS).map(producer).collect()
    }

    fn lone_consumers(&mut self) -> Vec<ConsumerPlan> {
        let mut modes = MODES;
        self.random.shuffle(&mut modes);
        let queues = queues();
        let consumer = |number: usize| ConsumerPlan {
            access: Access {
                is_optimized: self.random.one_in(2),
                maximum_redeliveries: queues[lone(number)].maximum_redeliveries,
                ..Access::plain(self.transport(number))
            },
            mode: modes[number],
            prefetch: *self.random.pick(&PREFETCHES),
            queues: vec![lone(number)],
            onward: None,
            is_lone: true,
            unsubscribes: false,
        };
        (0..LONE).map(consumer).collect()
    }

    /// Every mode with every prefetch over every transport, some of them for what is sent on, and where acknowledgements may be put off
    /// both with and without.
    fn consumers(&mut self) -> Vec<ConsumerPlan> {
        let consumer = |number: usize| {
            let (round, transport) = (number / MODES.len(), number / (MODES.len() * PREFETCHES.len()));
            let mode = MODES[number % MODES.len()];
            let is_last = number % 9 == 8;
            let first = if is_last { SHARED + number / 9 % ONWARD } else { number % SHARED };
            let mut queues = vec![first];
            let is_forwarding = mode == Transacted && !is_last;
            if is_forwarding && self.random.one_in(2) {
                queues.push((first + 1) % SHARED);
            }
            let onward =
                is_forwarding.then(|| if self.random.one_in(3) { self.topic() } else { self.onward() });
            ConsumerPlan {
                access: Access {
                    is_optimized: (round + transport) % 2 == 1,
                    ..Access::plain(self.transport(transport))
                },
                mode,
                prefetch: PREFETCHES[round % PREFETCHES.len()],
                queues,
                onward,
                is_lone: false,
                unsubscribes: false,
            }
        };
        (0..CONSUMERS - CONTAINERS - LONE - SUBSCRIBERS.len()).map(consumer).collect()
    }

    /// Two of them remove their subscription now and then.
    fn subscribers(&mut self) -> Vec<ConsumerPlan> {
        let queues = queues();
        let consumer = |(number, (mode, is_optimized)): (usize, (AcknowledgeMode, bool))| {
            let queue = subscription(number);
            let access = Access::to_subscription(self.transport(number), &queues[queue]);
            let prefetches = if is_optimized { &PREFETCHES[2..] } else { &PREFETCHES };
            ConsumerPlan {
                access: Access { is_optimized, ..access },
                mode,
                prefetch: *self.random.pick(prefetches),
                queues: vec![queue],
                onward: (mode == Transacted).then(|| self.onward()),
                is_lone: false,
                unsubscribes: number < 2,
            }
        };
        SUBSCRIBERS.into_iter().enumerate().map(consumer).collect()
    }

    fn containers(&mut self) -> Vec<ContainerPlan> {
        const MODES: [Acknowledge; 6] = [
            Acknowledge::Auto,
            Acknowledge::Client,
            Acknowledge::Transacted,
            Acknowledge::Individual,
            Acknowledge::DupsOk,
            Acknowledge::Manual,
        ];
        let queues = queues();
        let container = |number: usize| {
            // Those with a subscription in the modes that have something to put off there, and in a transaction.
            let subscribed = number.checked_sub(CONTAINERS - SUBSCRIBED_CONTAINERS);
            let acknowledge = match subscribed {
                Some(number) => {
                    [Acknowledge::Auto, Acknowledge::DupsOk, Acknowledge::Transacted, Acknowledge::Client]
                        [number]
                }
                None => MODES[number % MODES.len()],
            };
            let transport = self.transport(number / 2);
            let queue =
                subscribed.map_or_else(|| self.shared(), |number| subscription(SUBSCRIBERS.len() + number));
            let access = match subscribed {
                Some(_) => Access::to_subscription(transport, &queues[queue]),
                None => Access::plain(transport),
            };
            ContainerPlan {
                access: Access { is_optimized: number.is_multiple_of(4), ..access },
                acknowledge,
                prefetch: *self.random.pick(&PREFETCHES),
                queue,
                workers: if subscribed.is_some() { 1 } else { 1 + number as u32 % 2 },
                onward: (acknowledge == Acknowledge::Transacted).then(|| self.onward()),
            }
        };
        (0..CONTAINERS).map(container).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Transport; 2] = [Transport::Vm, Transport::Tcp];

    #[test]
    fn a_seed_makes_the_same_plan_again_and_another_one_another() {
        assert_eq!(Plan::new(7, &BOTH), Plan::new(7, &BOTH));
        assert_ne!(Plan::new(7, &BOTH), Plan::new(8, &BOTH));
    }

    #[test]
    fn whatever_the_seed_every_mode_meets_every_prefetch_and_transport_and_every_queue_has_its_consumers() {
        for seed in 0..200 {
            let plan = Plan::new(seed, &BOTH);
            assert_eq!(plan.producers.len(), PRODUCERS);
            assert_eq!(plan.consumers.len() + plan.containers.len(), CONSUMERS);
            for (mode, prefetch) in MODES.iter().flat_map(|mode| PREFETCHES.map(|prefetch| (*mode, prefetch)))
            {
                for transport in BOTH {
                    let is_it = |one: &ConsumerPlan| {
                        (one.mode, one.prefetch, one.access.transport) == (mode, prefetch, transport)
                    };
                    assert!(plan.consumers.iter().any(is_it), "{mode:?} {prefetch} {transport:?}");
                }
            }
            for transport in BOTH {
                assert!(plan.containers.iter().any(|container| container.access.transport == transport));
                assert!(plan.producers.iter().any(|producer| producer.access.transport == transport));
            }
            for (number, queue) in plan.queues.iter().enumerate() {
                let plain = plan.consumers.iter().flat_map(|one| &one.queues).filter(|one| **one == number);
                let containers = plan.containers.iter().filter(|container| container.queue == number);
                let all = plain.count() + containers.count();
                assert!(if queue.is_lone { all == 1 } else { all > 0 }, "{} has {all}", queue.name);
            }
        }
    }

    #[test]
    fn whatever_the_seed_acknowledgements_are_put_off_on_queues_and_subscriptions_and_transactions_span_both()
    {
        for seed in 0..200 {
            let plan = Plan::new(seed, &BOTH);
            let is_subscription = |queue: &usize| plan.queues[*queue].topic.is_some();
            for (mode, on_subscription) in [(Auto, false), (Auto, true), (DupsOk, false), (DupsOk, true)] {
                let puts_off = |one: &ConsumerPlan| {
                    one.mode == mode
                        && one.access.is_optimized
                        && one.prefetch >= 10
                        && one.queues.iter().all(is_subscription) == on_subscription
                };
                assert!(plan.consumers.iter().any(puts_off), "{mode:?} {on_subscription}");
            }
            let spans = |to: Target, other: Option<Target>| {
                matches!((to, other), (Target::Topic(_), Some(Target::Queue(_))))
                    || matches!((to, other), (Target::Queue(_), Some(Target::Topic(_))))
            };
            assert!(plan.producers.iter().any(|one| spans(one.to, one.other)));
            for topic in 0..plan.topics.len() {
                assert!(plan.queues.iter().any(|queue| queue.topic == Some(topic)), "{topic}");
                assert!(plan.producers.iter().any(|one| one.to == Target::Topic(topic)), "{topic}");
            }
        }
    }
}

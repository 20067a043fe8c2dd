//! Who takes part in a storm and how, all of it from the seed. What happens when is chance.

use corriere::core::AcknowledgeMode::{self, Auto, Client, DupsOk, Individual, Transacted};
use corriere::listener::Acknowledge;

use corriere_tests::random::Random;

pub(crate) const PRODUCERS: usize = 64;
pub(crate) const CONSUMERS: usize = 64;

/// How many of the consumers are containers, and how many have a queue of their own.
const CONTAINERS: usize = 16;
const LONE: usize = 4;

/// Queues with many consumers, those that consumers send on to, and those with one consumer.
const SHARED: usize = 6;
const ONWARD: usize = 2;

const MODES: [AcknowledgeMode; 5] = [Auto, Client, Transacted, Individual, DupsOk];
const PREFETCHES: [u32; 4] = [0, 1, 10, 100];

/// How a client reaches the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Vm,
    Tcp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    pub(crate) name: String,
    /// Whether it has one consumer, so that the order of each producer's messages is promised.
    pub(crate) is_lone: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProducerPlan {
    pub(crate) transport: Transport,
    pub(crate) queue: usize,
    pub(crate) is_persistent: bool,
    /// Whether it sends in transactions, over two queues, of which this is the other.
    pub(crate) other_queue: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConsumerPlan {
    pub(crate) transport: Transport,
    pub(crate) mode: AcknowledgeMode,
    pub(crate) prefetch: u32,
    /// One session receives from them all.
    pub(crate) queues: Vec<usize>,
    /// Where it sends on, within its transactions.
    pub(crate) onward: Option<usize>,
    pub(crate) is_lone: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContainerPlan {
    pub(crate) transport: Transport,
    pub(crate) acknowledge: Acknowledge,
    pub(crate) prefetch: u32,
    pub(crate) queue: usize,
    pub(crate) workers: u32,
    pub(crate) onward: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) queues: Vec<Queue>,
    pub(crate) producers: Vec<ProducerPlan>,
    pub(crate) consumers: Vec<ConsumerPlan>,
    pub(crate) containers: Vec<ContainerPlan>,
}

impl Plan {
    pub(crate) fn new(seed: u64, transports: &[Transport]) -> Self {
        let mut random = Random::new(seed);
        let queue = |name: String, is_lone| Queue { name, is_lone };
        let shared = (0..SHARED).map(|number| queue(format!("shared.{number}"), false));
        let onward = (0..ONWARD).map(|number| queue(format!("onward.{number}"), false));
        let lone = (0..LONE).map(|number| queue(format!("lone.{number}"), true));
        let mut lone_consumers = lone_consumers(&mut random, transports);
        let mut consumers = consumers(&mut random, transports);
        consumers.append(&mut lone_consumers);
        Self {
            seed,
            queues: shared.chain(onward).chain(lone).collect(),
            producers: producers(&mut random, transports),
            containers: containers(&mut random, transports),
            consumers,
        }
    }
}

fn shared(random: &mut Random) -> usize {
    random.next() as usize % SHARED
}

fn onward(random: &mut Random) -> usize {
    SHARED + random.next() as usize % ONWARD
}

fn lone(number: usize) -> usize {
    SHARED + ONWARD + number % LONE
}

/// Every eighth message without a store, every fourth in a transaction; the first two for each queue with one consumer.
fn producers(random: &mut Random, transports: &[Transport]) -> Vec<ProducerPlan> {
    let producer = |number: usize| ProducerPlan {
        transport: transports[number / 3 % transports.len()],
        queue: if number < 3 * LONE { lone(number) } else { shared(random) },
        is_persistent: number % 8 != 5,
        other_queue: (number % 4 == 3).then(|| shared(random)),
    };
    (0..PRODUCERS).map(producer).collect()
}

fn lone_consumers(random: &mut Random, transports: &[Transport]) -> Vec<ConsumerPlan> {
    let mut modes = MODES;
    random.shuffle(&mut modes);
    let consumer = |number: usize| ConsumerPlan {
        transport: transports[number % transports.len()],
        mode: modes[number],
        prefetch: *random.pick(&PREFETCHES),
        queues: vec![lone(number)],
        onward: None,
        is_lone: true,
    };
    (0..LONE).map(consumer).collect()
}

/// Every mode with every prefetch over every transport, and some more for what is sent on.
fn consumers(random: &mut Random, transports: &[Transport]) -> Vec<ConsumerPlan> {
    let mut consumers = Vec::new();
    let combinations = MODES.len() * PREFETCHES.len() * 2;
    for number in 0..CONSUMERS - CONTAINERS - LONE {
        let mode = MODES[number % MODES.len()];
        let first = if number < combinations { number % SHARED } else { SHARED + number % ONWARD };
        let mut queues = vec![first];
        let is_forwarding = mode == Transacted && number < combinations;
        if is_forwarding && random.one_in(2) {
            queues.push((first + 1) % SHARED);
        }
        consumers.push(ConsumerPlan {
            transport: transports[number / (MODES.len() * PREFETCHES.len()) % transports.len()],
            mode,
            prefetch: PREFETCHES[number / MODES.len() % PREFETCHES.len()],
            queues,
            onward: is_forwarding.then(|| onward(random)),
            is_lone: false,
        });
    }
    consumers
}

fn containers(random: &mut Random, transports: &[Transport]) -> Vec<ContainerPlan> {
    let container = |number: usize| {
        let acknowledge = [Acknowledge::Auto, Acknowledge::Client, Acknowledge::Transacted][number % 3];
        ContainerPlan {
            transport: transports[number / 3 % transports.len()],
            acknowledge,
            prefetch: *random.pick(&PREFETCHES),
            queue: shared(random),
            workers: 1 + number as u32 % 2,
            onward: (acknowledge == Acknowledge::Transacted).then(|| onward(random)),
        }
    };
    (0..CONTAINERS).map(container).collect()
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
                        (one.mode, one.prefetch, one.transport) == (mode, prefetch, transport)
                    };
                    assert!(plan.consumers.iter().any(is_it), "{mode:?} {prefetch} {transport:?}");
                }
            }
            for transport in BOTH {
                assert!(plan.containers.iter().any(|container| container.transport == transport));
                assert!(plan.producers.iter().any(|producer| producer.transport == transport));
            }
            for (number, queue) in plan.queues.iter().enumerate() {
                let plain = plan.consumers.iter().flat_map(|one| &one.queues).filter(|one| **one == number);
                let containers = plan.containers.iter().filter(|container| container.queue == number);
                let all = plain.count() + containers.count();
                assert!(if queue.is_lone { all == 1 } else { all > 0 }, "{} has {all}", queue.name);
            }
        }
    }
}

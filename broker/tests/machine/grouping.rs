//! Inputs that are taken in one step come to what they come to in steps of their own.

use std::sync::Arc;

use corriere_broker::machine::{Batch, Effects, Input, Ticket};
use corriere_core::provider::{Ack, AckKind, Command, SendMessage};
use corriere_core::{Message, ProducerId, TransactionId};
use proptest::collection::vec;
use proptest::prelude::*;

use super::world::{Consumer, World, failed, message, non_persistent, poison, queue, window};

/// What a client may ask for. Numbers are of deliveries, also of such as there are not.
#[derive(Clone, Debug)]
enum Asked {
    Send { is_persistent: bool, transaction: Option<u64> },
    Acknowledge { consumer: usize, number: u64, kind: AckKind, transaction: Option<u64> },
    HandedOver { consumer: usize, number: u64 },
    Begin(u64),
    Commit(u64),
    Rollback(u64),
    Drain { consumer: usize },
}

/// All that came of some steps, kind by kind.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    operations: Vec<String>,
    confirmations: Vec<String>,
    deliveries: Vec<String>,
}

/// A machine and two consumers of one queue.
struct Side {
    world: World,
    consumers: [Consumer; 2],
}

fn asked() -> impl Strategy<Value = Asked> {
    let transaction = || prop::option::weighted(0.4, 1..3_u64);
    let kind = prop_oneof![4 => Just(AckKind::Standard), 1 => Just(failed()), 1 => Just(poison())];
    prop_oneof![
        6 => (any::<bool>(), transaction())
            .prop_map(|(is_persistent, transaction)| Asked::Send { is_persistent, transaction }),
        5 => (0..2_usize, 1..12_u64, kind, transaction()).prop_map(|(consumer, number, kind, transaction)| {
            Asked::Acknowledge { consumer, number, kind, transaction }
        }),
        3 => (0..2_usize, 1..12_u64).prop_map(|(consumer, number)| Asked::HandedOver { consumer, number }),
        2 => (1..3_u64).prop_map(Asked::Begin),
        2 => (1..3_u64).prop_map(Asked::Commit),
        1 => (1..3_u64).prop_map(Asked::Rollback),
        1 => (0..2_usize).prop_map(|consumer| Asked::Drain { consumer }),
    ]
}

impl Side {
    fn new() -> Self {
        let mut world = World::new();
        let connection = world.connect();
        let consumers = [3, 2].map(|prefetch| world.consumer(connection, &queue("orders"), window(prefetch)));
        Self { world, consumers }
    }

    fn command(&self, asked: &Asked, sent: &Arc<Message>) -> Command {
        let transaction = |number: u64| TransactionId::Local(number);
        match asked {
            Asked::Send { transaction: in_transaction, .. } => Command::Send(SendMessage {
                producer: ProducerId(1),
                message: Arc::clone(sent),
                transaction: in_transaction.map(transaction),
                deadline: None,
            }),
            Asked::Acknowledge { consumer, number, kind, transaction: in_transaction } => {
                Command::Acknowledge(Ack {
                    subscription: self.consumers[*consumer].subscription,
                    first: *number,
                    last: *number,
                    kind: kind.clone(),
                    transaction: in_transaction.map(transaction),
                })
            }
            Asked::HandedOver { consumer, number } => Command::HandedOver {
                subscription: self.consumers[*consumer].subscription,
                number: *number,
                mark: None,
            },
            Asked::Begin(number) => Command::Begin { transaction: transaction(*number) },
            Asked::Commit(number) => Command::Commit { transaction: transaction(*number), one_phase: true },
            Asked::Rollback(number) => Command::Rollback { transaction: transaction(*number), cause: None },
            Asked::Drain { consumer } => {
                Command::Drain { subscription: self.consumers[*consumer].subscription }
            }
        }
    }

    /// Takes the inputs, and then the end of each batch by itself.
    fn take(&mut self, inputs: Vec<Input>, is_grouped: bool) -> Outcome {
        let (now, machine) = (self.world.now, &mut self.world.machine);
        let mut outcome = Outcome::default();
        let mut unstored = if is_grouped {
            outcome.note(machine.step_all(now, inputs))
        } else {
            inputs.into_iter().flat_map(|input| outcome.note(machine.step(now, input))).collect()
        };
        while !unstored.is_empty() {
            let batch = unstored.remove(0);
            unstored.extend(outcome.note(machine.step(now, Input::Stored { batch, outcome: Ok(()) })));
        }
        outcome
    }
}

impl Outcome {
    fn note(&mut self, effects: Effects) -> Vec<corriere_broker::machine::BatchId> {
        let mut batches = Vec::new();
        for Batch { id, operations, .. } in effects.store {
            batches.push(id);
            self.operations.extend(operations.iter().map(|operation| format!("{operation:?}")));
        }
        self.confirmations.extend(effects.confirmations.iter().map(|answer| format!("{answer:?}")));
        let deliveries = effects.deliveries.iter().flat_map(|(_, batch)| batch);
        self.deliveries.extend(deliveries.map(|dispatch| format!("{dispatch:?}")));
        batches
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn commands_in_one_step_come_to_what_they_come_to_one_by_one(
        groups in vec(vec((asked(), any::<bool>()), 1..8), 1..12)
    ) {
        let (mut together, mut alone) = (Side::new(), Side::new());
        let mut number = 0;
        for group in groups {
            let mut inputs = (Vec::new(), Vec::new());
            for (asked, is_awaited) in &group {
                number += 1;
                let make = if matches!(asked, Asked::Send { is_persistent: true, .. }) { message } else { non_persistent };
                let sent = Arc::new(make(&queue("orders"), number));
                let ticket = if *is_awaited { Ticket(1_000 + number) } else { Ticket::NOBODY };
                let connection = together.consumers[0].connection;
                let input = |command| Input::Command { connection, ticket, command };
                inputs.0.push(input(together.command(asked, &sent)));
                inputs.1.push(input(together.command(asked, &sent)));
            }
            prop_assert_eq!(together.take(inputs.0, true), alone.take(inputs.1, false));
        }
    }
}

//! What is confirmed while bodies are with the store only.

use std::sync::Arc;

use corriere_broker::Settings;
use corriere_broker::machine::{ConnectionKey, Effects, Input, Machine, Ticket};
use corriere_broker::store::{
    DeliveryState, Recovered, RecoveredMessage, RecoveredQueue, StoreError, StoredId, Totals,
};
use corriere_core::provider::{Command, Credit, SessionMode, Subscribe};
use corriere_core::{ConnectionId, Priority, SessionId, SubscriptionId, Timestamp};

use crate::world::{NOW, message, queue, sequences, window};

const CONNECTION: ConnectionKey = ConnectionKey(1);
const SUBSCRIPTION: SubscriptionId = SubscriptionId(2);

struct Store {
    machine: Machine,
    last_ticket: u64,
}

impl Store {
    /// A machine that recovered so many messages, and a session.
    fn with(messages: u64) -> Self {
        let message = |stored| RecoveredMessage {
            stored: StoredId(stored),
            priority: Priority::default(),
            expiration: None,
            size: 100,
            state: DeliveryState::default(),
        };
        let recovered = RecoveredQueue {
            destination: queue("q"),
            totals: Totals::default(),
            messages: (1..=messages).map(message).collect(),
        };
        let recovered = Recovered { queues: vec![recovered], ..Recovered::default() };
        let mut store =
            Self { machine: Machine::recovered(Settings::default(), recovered, true, NOW), last_ticket: 0 };
        let identity = ConnectionId::unique();
        store
            .machine
            .step(Timestamp(1), Input::Connect { connection: CONNECTION, identity, client_id: None });
        store.command(Command::OpenSession { session: SessionId(1), mode: SessionMode::Client });
        store
    }

    fn command(&mut self, command: Command) -> (Ticket, Effects) {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        let effects =
            self.machine.step(Timestamp(1), Input::Command { connection: CONNECTION, ticket, command });
        (ticket, effects)
    }

    fn open(&mut self, credit: Credit) -> (Ticket, Effects) {
        self.command(Command::OpenSubscription(Box::new(Subscribe {
            subscription: SUBSCRIPTION,
            session: SessionId(1),
            destination: queue("q"),
            credit,
            selector: None,
            no_local: false,
            is_default_credit: false,
            durable_name: None,
            redelivery: None,
        })))
    }

    fn grant(&mut self) -> Effects {
        self.command(Command::Grant { subscription: SUBSCRIPTION, credit: 1 }).1
    }

    fn drain(&mut self) -> (Ticket, Effects) {
        self.command(Command::Drain { subscription: SUBSCRIPTION })
    }

    fn loaded(&mut self, stored: u64) -> Effects {
        let body = Arc::new(message(&queue("q"), stored));
        self.machine.step(Timestamp(1), Input::Loaded { messages: vec![(StoredId(stored), Ok(body))] })
    }
}

fn confirmed(effects: &Effects) -> Vec<Ticket> {
    effects.confirmations.iter().filter(|(_, outcome)| outcome.is_ok()).map(|(ticket, _)| *ticket).collect()
}

fn delivered(effects: &Effects) -> Vec<u64> {
    effects.deliveries.iter().flat_map(|(_, dispatches)| sequences(dispatches)).collect()
}

#[test]
fn a_drain_is_confirmed_when_what_it_is_owed_has_been_read_and_delivered() {
    let mut store = Store::with(2);
    store.open(Credit::Explicit);
    assert_eq!(store.grant().load, [StoredId(1)]);
    let (drain, effects) = store.drain();
    assert_eq!(confirmed(&effects), []);
    let effects = store.loaded(1);
    assert_eq!((delivered(&effects), confirmed(&effects)), (vec![1], vec![drain]));
    let (drain, effects) = store.drain();
    assert_eq!(confirmed(&effects), [drain], "there is no credit for the other one");
}

#[test]
fn credit_that_was_granted_after_a_drain_outlives_it() {
    let mut store = Store::with(3);
    store.open(Credit::Explicit);
    store.grant();
    let (drain, _) = store.drain();
    store.grant();
    let effects = store.loaded(1);
    assert_eq!((delivered(&effects), confirmed(&effects)), (vec![1], vec![drain]));
    assert_eq!(delivered(&store.loaded(2)), [2]);
    assert_eq!(delivered(&store.loaded(3)), [0; 0]);
}

#[test]
fn a_new_subscription_is_confirmed_when_its_window_is_full_or_nothing_is_left() {
    for prefetch in [2, 10] {
        let mut store = Store::with(3);
        let (opened, effects) = store.open(window(prefetch));
        assert_eq!(confirmed(&effects), []);
        assert_eq!(confirmed(&store.loaded(1)), []);
        let effects = store.loaded(2);
        if prefetch == 2 {
            assert_eq!(confirmed(&effects), [opened]);
        } else {
            assert_eq!(confirmed(&effects), []);
            assert_eq!(confirmed(&store.loaded(3)), [opened]);
        }
    }
}

#[test]
fn nobody_waits_for_a_body_that_cannot_be_read() {
    let mut store = Store::with(1);
    store.open(Credit::Explicit);
    store.grant();
    let (drain, _) = store.drain();
    let error = StoreError::NotKept { stored: StoredId(1) };
    let effects =
        store.machine.step(Timestamp(1), Input::Loaded { messages: vec![(StoredId(1), Err(error))] });
    assert_eq!((delivered(&effects), confirmed(&effects)), (vec![], vec![drain]));
}

#[test]
fn nobody_waits_for_the_body_of_a_subscription_that_is_closed() {
    let mut store = Store::with(1);
    store.open(Credit::Explicit);
    store.grant();
    store.drain();
    let close = Command::CloseSubscription { subscription: SUBSCRIPTION, last_handed_over: 0 };
    let (close, effects) = store.command(close);
    assert!(confirmed(&effects).contains(&close));
    assert_eq!(effects.confirmations.len(), 2, "{effects:?}");
}

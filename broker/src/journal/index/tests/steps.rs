//! Histories of an index.

use bytes::Bytes;
use corriere_core::Destination;
use corriere_core::id::{ConnectionId, Xid};
use proptest::prelude::*;

use crate::store::{Removal, StoreTransaction, SubscriptionName};

/// A step of a history over few messages, queues, producers and transactions, so that they meet.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Append {
        queue: u8,
        moved: bool,
        producer: Option<(u8, u8)>,
        transaction: Option<u8>,
        large: bool,
    },
    /// To those of three subscriptions whose bits are set.
    Publish {
        to: u8,
        moved: bool,
        producer: Option<(u8, u8)>,
        transaction: Option<u8>,
        large: bool,
    },
    Create {
        subscription: u8,
        no_local: bool,
    },
    Unsubscribe {
        subscription: u8,
    },
    Remove {
        stored: u8,
        reason: Removal,
        transaction: Option<u8>,
    },
    State {
        stored: u8,
        failed: u32,
    },
    Prepare {
        transaction: u8,
    },
    Commit {
        transaction: u8,
    },
    Rollback {
        transaction: u8,
    },
    /// Some messages of subscriptions that are gone are taken out.
    TakeOut {
        most: usize,
    },
    /// A checkpoint is written.
    Checkpoint,
    /// A checkpoint is written, and the next process begins with it.
    Restart,
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let reason = prop_oneof![
        Just(Removal::Acknowledged),
        Just(Removal::DeadLettered),
        Just(Removal::Expired),
        Just(Removal::Discarded),
        Just(Removal::Purged),
        Just(Removal::MovedOut)
    ];
    let transaction = || prop::option::of(0_u8..4);
    let step = prop_oneof![
        6 => (0_u8..3, any::<bool>(), prop::option::of((0_u8..3, any::<u8>())), transaction(), any::<bool>())
            .prop_map(|(queue, moved, producer, transaction, large)| {
                Step::Append { queue, moved, producer, transaction, large }
            }),
        4 => (0_u8..8, any::<bool>(), prop::option::of((0_u8..3, any::<u8>())), transaction(), any::<bool>())
            .prop_map(|(to, moved, producer, transaction, large)| {
                Step::Publish { to, moved, producer, transaction, large }
            }),
        2 => (0_u8..3, any::<bool>())
            .prop_map(|(subscription, no_local)| Step::Create { subscription, no_local }),
        1 => (0_u8..3).prop_map(|subscription| Step::Unsubscribe { subscription }),
        4 => (any::<u8>(), reason, transaction())
            .prop_map(|(stored, reason, transaction)| Step::Remove { stored, reason, transaction }),
        2 => (any::<u8>(), 0_u32..5).prop_map(|(stored, failed)| Step::State { stored, failed }),
        1 => (0_u8..4).prop_map(|transaction| Step::Prepare { transaction }),
        2 => (0_u8..4).prop_map(|transaction| Step::Commit { transaction }),
        1 => (0_u8..4).prop_map(|transaction| Step::Rollback { transaction }),
        2 => (0_usize..4).prop_map(|most| Step::TakeOut { most }),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 0..120)
}

pub(super) fn transaction(number: u8) -> StoreTransaction {
    if number < 2 {
        StoreTransaction::Local(ConnectionId::foreign("ID:c"), u64::from(number))
    } else {
        StoreTransaction::Distributed(xid(number))
    }
}

pub(super) fn xid(number: u8) -> Xid {
    Xid { format: 1, global: Bytes::from(vec![number]), branch: Bytes::new() }
}

pub(super) fn queue(number: u8) -> Destination {
    Destination::queue(&format!("q{number}")).unwrap()
}

pub(super) fn topic() -> Destination {
    Destination::topic("t").unwrap()
}

pub(super) fn subscription(number: u8) -> SubscriptionName {
    SubscriptionName { client_id: "c".into(), name: format!("s{number}").into() }
}

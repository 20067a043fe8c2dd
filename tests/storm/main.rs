//! A storm: 64 producers and 64 consumers of mixed modes and transports, among them listener containers, on a broker that is
//! ended and started again at random, in order and not, while clients are killed and cut off. They send to queues and to topics
//! with durable subscriptions, some of which are removed and made again.
//!
//! When the time is over, the producers stop, the broker stays, and everything comes to rest. Then is checked, for each durable
//! subscription by itself:
//! - every confirmed send was handled, on a topic by all subscriptions that were there when it began; and one that was not
//!   confirmed is there once or not at all, in all of them or in none;
//! - nothing came back after an acknowledgement that was confirmed, or a commit, or with a subscription that was made again;
//! - a commit that was not answered was carried out whole or not at all, on queues and topics together, and what nobody asked to
//!   commit not at all;
//! - what a consumer gave back came to it first and in the old order, and a queue with one consumer gave it each producer's
//!   messages in the order of their sends;
//! - only what was handed over counts as a delivery, what failed more often than it may is a dead letter and no other message
//!   is, and the broker's counts are conserved in each of its lives.
//!
//! What a receive returned that acknowledges by itself (AUTO, DUPS-OK) is handled when it returns; nobody hears of its
//! acknowledgement, and it may have been put off, so it may come back when its client or the broker was lost, and else not. Once
//! the broker has heard of it, it may come back when the broker did not end in order, and else not.
//!
//! The judge itself is tested in `ledger/tests.rs`: it is told what a broker must not do, and has to report it.
//!
//! There are two arenas. In [`arena::Process`] the broker is a process of its own, on a disk, killed with `kill -9`, and all
//! clients come over `tcp:`. In [`arena::Within`] it is in this process, so that half of the clients come over `vm:`, and its
//! files are recorded, so that the power can be cut.
//!
//! `CORRIERE_STORM_SEED` is the seed, which is printed; the same seed makes the same plan, not the same history.
//! `CORRIERE_STORM_SECONDS` is how long each arena storms, 25 seconds by default: storms of so long, one after the other
//! on the same directory.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

mod arena;
mod clients;
mod consumers;
mod containers;
mod ledger;
mod line;
mod plan;
mod producers;
mod standing;
mod storm;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::Mutex;

use arena::{Arena, Process, Within};
use corriere_tests::random::{Random, number};

/// How long a storm takes by itself. Both arenas together, with their coming to rest, have a minute.
const TIME: Duration = Duration::from_secs(25);

/// One arena at a time, so that each has the machine.
static TURN: Mutex<()> = Mutex::const_new(());

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_killed_as_a_process_loses_nothing_and_repeats_nothing_in_a_storm() {
    let _turn = TURN.lock().await;
    storms(Arena::Process(Box::new(Process::start().await))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_whose_power_is_cut_loses_nothing_and_repeats_nothing_in_a_storm_over_vm_and_tcp() {
    let _turn = TURN.lock().await;
    storms(Arena::Within(Box::new(Within::start().await))).await;
}

/// One storm after the other until the time is over, and the end of the arena.
async fn storms(arena: Arena) {
    let first = number("CORRIERE_STORM_SEED").unwrap_or_else(seed_from_clock);
    let all = number("CORRIERE_STORM_SECONDS").map_or(TIME, Duration::from_secs);
    let (arena, begin) = (Arc::new(arena), Instant::now());
    let mut seeds = Random::new(first);
    let mut seed = first;
    while begin.elapsed() < all {
        println!("to storm like this again: CORRIERE_STORM_SEED={seed}");
        storm::rage(&arena, seed, TIME.min(all)).await;
        seed = seeds.next();
    }
}

fn seed_from_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

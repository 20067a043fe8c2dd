//! Random histories: whatever consumers do, each message is settled once, and the peer finds nothing wrong with it.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex};

use corriere_core::AcknowledgeMode::{Client, Transacted};
use corriere_core::provider::Cause;
use corriere_core::{Consumer, Delivery, Destination, Release, Session};

use crate::peer::{ENDLESS, Peer, text, within};

over_each_peer! {
    each_message_is_settled_once_whatever_its_consumers_do,
}

const MESSAGES: usize = 120;
const SEEDS: u64 = 4;

/// A plain sequence of numbers that no one can foresee and everyone can repeat (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// One session with a consumer, and what it holds unsettled.
struct Worker {
    session: Session,
    consumer: Consumer,
    held: Vec<Delivery>,
}

impl Worker {
    async fn start(peer: &Peer, q: &Destination, dice: &mut Dice) -> Self {
        let mode = if dice.below(2) == 0 { Client } else { Transacted };
        let options = format!("{ENDLESS}&jms.nonBlockingRedelivery={}", dice.below(2) == 0);
        let session = within(peer.connect(&options).await.create_session(mode)).await.unwrap();
        let prefetch = [0, 1, 3, 20][dice.below(4) as usize];
        let consumer = within(session.create_consumer_with_prefetch(q, prefetch)).await.unwrap();
        Self { session, consumer, held: Vec::new() }
    }

    /// Does something; what is settled by it is noted. False when it is to be replaced.
    async fn act(&mut self, dice: &mut Dice, settled: &mut BTreeMap<String, usize>) -> bool {
        let is_transacted = self.session.is_transacted();
        match dice.below(10) {
            0..=5 => {
                if let Some(delivery) = within(self.consumer.receive_no_wait()).await.unwrap() {
                    self.held.push(delivery.into_single());
                }
            }
            6 if is_transacted => {
                within(self.session.rollback()).await.unwrap();
                self.held.clear();
            }
            6 => {
                within(self.session.recover()).await.unwrap();
                self.held.clear();
            }
            7 if is_transacted => {
                within(self.session.commit()).await.unwrap();
                note(self.held.drain(..), settled);
            }
            7 if !self.held.is_empty() => {
                let one = self.held.swap_remove(dice.below(self.held.len() as u64) as usize);
                within(one.acknowledge()).await.unwrap();
                note([one], settled);
            }
            8 if !is_transacted && !self.held.is_empty() => {
                let one = self.held.swap_remove(dice.below(self.held.len() as u64) as usize);
                let cause = Cause::failure("bad luck");
                within(one.release(Release::Redeliver { delay: None, cause })).await.unwrap();
            }
            9 if dice.below(4) == 0 => {
                within(self.session.close()).await.unwrap();
                return false;
            }
            _ => {}
        }
        true
    }
}

fn note(deliveries: impl IntoIterator<Item = Delivery>, settled: &mut BTreeMap<String, usize>) {
    for delivery in deliveries {
        *settled.entry(text(&delivery).to_owned()).or_default() += 1;
    }
}

async fn each_message_is_settled_once_whatever_its_consumers_do(peer: &Peer) {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    for seed in 1..=SEEDS {
        let q = peer.queue(&format!("q{seed}"));
        peer.send_numbered(&q, MESSAGES).await;
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut settled = BTreeMap::new();
        let mut workers = Vec::new();
        for _ in 0..3 {
            workers.push(Worker::start(peer, &q, &mut dice).await);
        }
        for _ in 0..400 {
            let chosen = dice.below(workers.len() as u64) as usize;
            if !workers[chosen].act(&mut dice, &mut settled).await {
                workers[chosen] = Worker::start(peer, &q, &mut dice).await;
            }
        }
        for worker in workers {
            within(worker.session.close()).await.unwrap();
        }
        for seen in peer.drain(&q, MESSAGES - settled.len()).await {
            *settled.entry(seen.text).or_default() += 1;
        }
        assert_eq!(settled.len(), MESSAGES, "seed {seed}");
        assert!(settled.values().all(|times| *times == 1), "seed {seed}: {settled:?}");
    }
    let complaints = log.lines_with("failure that nobody waits for");
    assert!(complaints.is_empty(), "{complaints:#?}");
}

/// What is logged on this thread.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn lines_with(&self, text: &str) -> Vec<String> {
        let log = self.0.lock().unwrap();
        String::from_utf8_lossy(&log).lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

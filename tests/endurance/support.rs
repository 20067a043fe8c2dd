//! Seeds, cases, cut futures, and a broker.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use corriere_broker::store::MemoryStore;
use corriere_broker::{Broker, Settings};
use corriere_core::{Clock, Connection, ConnectionFactory, RedeliveryPolicy};

/// Beyond this something hangs.
const HANG: Duration = Duration::from_secs(120);

/// A generator of numbers that look random (`SplitMix64`).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Another generator, for a task of its own.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }
}

/// What became of a future that may have been cut.
#[derive(Debug)]
pub(crate) enum Cut<T> {
    Done(T),
    /// It was dropped where it waited.
    Dropped,
    /// It was dropped before it was polled at all.
    NeverPolled,
}

impl<T> Cut<T> {
    /// Whether it was begun, which is what gives an acknowledgement its effect.
    pub(crate) fn was_polled(&self) -> bool {
        !matches!(self, Self::NeverPolled)
    }
}

/// Polls `future` to its end half of the time, and else drops it after no, one, two or three polls.
pub(crate) async fn cut<F: Future>(random: &mut Random, future: F) -> Cut<F::Output> {
    let mut polls = match random.below(8) {
        0 => return Cut::NeverPolled,
        polls @ 1..=3 => polls,
        _ => return Cut::Done(future.await),
    };
    let mut future = pin!(future);
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Cut::Done(output));
        }
        polls -= 1;
        if polls == 0 { Poll::Ready(Cut::Dropped) } else { Poll::Pending }
    })
    .await
}

fn environment<T: FromStr>(name: &str) -> Option<T> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is `{value}`; expected a whole number")))
}

/// Runs `case` with one seed after the other, every second time on one thread only.
pub(crate) fn for_seeds<F: Future<Output = ()>>(cases: u64, time: Duration, case: impl Fn(u64) -> F) {
    let asked = environment("CORRIERE_CASES");
    let first = environment("CORRIERE_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.as_secs() ^ u64::from(now.subsec_nanos()).rotate_left(32)
    });
    let begin = Instant::now();
    for index in 0..asked.unwrap_or(cases) {
        if index > 0 && asked.is_none() && begin.elapsed() > time {
            break;
        }
        let seed = first.wrapping_add(index);
        // Shown when the case fails.
        println!("to run this case again: CORRIERE_SEED={seed} CORRIERE_CASES=1");
        let runtime = if seed % 2 == 0 {
            tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
        } else {
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
        };
        runtime.block_on(within(case(seed)));
    }
}

/// A broker with endless redelivery without delay.
pub(crate) fn broker(memory_limit: u64) -> Broker {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let redelivery = RedeliveryPolicy {
        maximum_redeliveries: None,
        initial_delay: Duration::ZERO,
        delay: Duration::ZERO,
        ..RedeliveryPolicy::default()
    };
    let settings = Settings { memory_limit, redelivery, ..Settings::default() };
    let name = format!("endurance-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    Broker::start(&name, settings, Arc::new(MemoryStore), Clock::system()).unwrap()
}

/// A started connection.
pub(crate) async fn connect(broker: &Broker) -> Connection {
    let factory = ConnectionFactory::from_url(&format!("vm://{}", broker.name())).unwrap();
    let connection = factory.create_connection().await.unwrap();
    connection.start().unwrap();
    connection
}

/// Catches a hang.
pub(crate) fn within<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let future = Box::pin(future);
    async { tokio::time::timeout(HANG, future).await.expect("this should not hang") }
}

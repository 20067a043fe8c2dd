//! The consumer's side: a listener that checks what it is given, and what it counted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use corriere::core::{AcknowledgeMode, Connection, Consumer, Delivery, Destination};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::payload::{self, Filling};
use crate::failure::Failure;

/// How many messages may be under way.
const WINDOW: usize = 10_000;
/// After so long without a message, those that are still missing will not come.
const PATIENCE: Duration = Duration::from_secs(60);
const GLANCE: Duration = Duration::from_millis(1);

/// What came, as the listener tells it.
#[derive(Debug)]
pub(super) struct Received {
    tally: Mutex<Tally>,
    /// A send takes one, the arrival of its message gives it back.
    pub(super) window: Semaphore,
    fillings: Vec<Filling>,
}

#[derive(Debug)]
struct Tally {
    /// From the send to the listener, in nanoseconds.
    times: Vec<u64>,
    last: Instant,
    /// The sequence that is next, for each producer.
    next: Vec<u64>,
    wrong: Option<String>,
}

impl Received {
    pub(super) fn new(producers: u32) -> Arc<Self> {
        let next = vec![0; producers as usize];
        Arc::new(Self {
            tally: Mutex::new(Tally { times: Vec::new(), last: Instant::now(), next, wrong: None }),
            window: Semaphore::new(WINDOW),
            fillings: (0..producers).map(Filling::of).collect(),
        })
    }

    /// Attaches the listener to a queue: AUTO, with the default prefetch.
    pub(super) async fn attach(
        self: &Arc<Self>,
        connection: &Connection,
        queue: &Destination,
    ) -> Result<Consumer, Failure> {
        let session = connection.create_session(AcknowledgeMode::Auto).await?;
        let consumer = session.create_consumer(queue).await?;
        let received = Arc::clone(self);
        consumer.set_message_listener(move |delivery| {
            received.take(&delivery);
            async { Ok(()) }
        })?;
        Ok(consumer)
    }

    fn take(&self, delivery: &Delivery) {
        let now = Instant::now();
        let mut tally = self.lock();
        tally.last = now;
        match self.checked(delivery, &mut tally.next) {
            Ok(sent) => tally.times.push(payload::nanoseconds(now).saturating_sub(sent)),
            Err(wrong) => drop(tally.wrong.get_or_insert(wrong)),
        }
        self.window.add_permits(1);
    }

    /// When it was sent, if it is whole and none of its producer is missing before it.
    fn checked(&self, delivery: &Delivery, next: &mut [u64]) -> Result<u64, String> {
        let Some((header, payload)) = payload::header(delivery.message()) else {
            return Err("a message came that nobody sent".to_owned());
        };
        let producer = header.producer as usize;
        let (Some(next), Some(filling)) = (next.get_mut(producer), self.fillings.get(producer)) else {
            return Err(format!("a message of producer {producer} came, which there is not"));
        };
        if !filling.is_in(payload) {
            return Err(format!(
                "the payload of message {} of producer {producer} has changed",
                header.sequence
            ));
        }
        if header.sequence != *next {
            return Err(format!(
                "of producer {producer} came message {} where {next} was due",
                header.sequence
            ));
        }
        *next += 1;
        Ok(header.sent)
    }

    /// Waits until so many came since the last call, and returns their times and when the last one came.
    pub(super) async fn all(&self, sent: u64) -> Result<(Vec<u64>, Instant), Failure> {
        let begin = Instant::now();
        loop {
            {
                let mut tally = self.lock();
                if let Some(wrong) = tally.wrong.take() {
                    return Err(Failure::Received(wrong));
                }
                let count = tally.times.len() as u64;
                if count == sent {
                    return Ok((std::mem::take(&mut tally.times), tally.last));
                }
                if begin.max(tally.last).elapsed() > PATIENCE {
                    return Err(Failure::Received(format!("of {sent} messages only {count} came")));
                }
            }
            sleep(GLANCE).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

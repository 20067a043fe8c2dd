//! The producers' side.

use std::sync::Arc;
use std::time::{Duration, Instant};

use corriere::core::{AcknowledgeMode, Connection, Destination, Producer, Session};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::payload::{self, Filling, Header};
use super::receiver::Received;
use crate::failure::Failure;
use crate::limits::wait_until;

/// How a producer sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pattern {
    /// One after the other, each confirmed before the next.
    Confirmed,
    /// So many to a transaction.
    Transactions(u32),
    /// So many a second, each confirmed.
    Paced(f64),
}

/// A producer with a session of its own.
#[derive(Debug)]
pub(super) struct Sender {
    number: u32,
    filling: Filling,
    session: Session,
    producer: Producer,
    pattern: Pattern,
    sequence: u64,
}

/// What a phase of sending came to.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub(super) messages: u64,
    /// How long each send took, or each commit with the sends before it, in nanoseconds.
    pub(super) times: Vec<u64>,
}

impl Sender {
    pub(super) async fn new(
        connection: &Connection,
        queue: &Destination,
        number: u32,
        pattern: Pattern,
    ) -> Result<Self, Failure> {
        let mode = match pattern {
            Pattern::Transactions(_) => AcknowledgeMode::Transacted,
            Pattern::Confirmed | Pattern::Paced(_) => AcknowledgeMode::Auto,
        };
        let session = connection.create_session(mode).await?;
        let producer = session.create_producer(Some(queue)).await?;
        Ok(Self { number, filling: Filling::of(number), session, producer, pattern, sequence: 0 })
    }

    /// Sends for so long, no faster than messages arrive where there is somebody to receive them.
    async fn send_for(&mut self, time: Duration, received: Option<&Received>) -> Result<Sent, Failure> {
        let mut sent = Sent::default();
        let begin = Instant::now();
        while begin.elapsed() < time {
            let since = match self.pattern {
                // It has a thread of its own, so that it may block.
                Pattern::Paced(rate) => {
                    wait_until(begin + Duration::from_secs_f64(sent.messages as f64 / rate))
                }
                Pattern::Confirmed | Pattern::Transactions(_) => Instant::now(),
            };
            let batch = if let Pattern::Transactions(size) = self.pattern { size } else { 1 };
            for _ in 0..batch {
                if let Some(received) = received
                    && let Ok(permit) = received.window.acquire().await
                {
                    permit.forget();
                }
                let moment = if batch == 1 { since } else { Instant::now() };
                self.send_one(moment).await?;
            }
            if batch > 1 {
                self.session.commit().await?;
            }
            sent.messages += u64::from(batch);
            sent.times.push(since.elapsed().as_nanos() as u64);
        }
        Ok(sent)
    }

    pub(super) async fn send_one(&mut self, moment: Instant) -> Result<(), Failure> {
        let sent = payload::nanoseconds(moment);
        let header = Header { producer: self.number, sequence: self.sequence, sent };
        self.sequence += 1;
        self.producer.send(&self.filling.message(header)).await?;
        Ok(())
    }
}

/// Sends from all of them at once for so long, and gives them back.
pub(super) async fn send_from_all(
    senders: Vec<Sender>,
    time: Duration,
    received: Option<&Arc<Received>>,
) -> Result<(Vec<Sender>, Sent), Failure> {
    let mut tasks = JoinSet::new();
    for mut sender in senders {
        let received = received.cloned();
        let keeps_time = matches!(sender.pattern, Pattern::Paced(_));
        let sending = async move {
            let sent = sender.send_for(time, received.as_deref()).await?;
            Ok::<_, Failure>((sender, sent))
        };
        if keeps_time {
            // The runtime's own timer is as coarse as a millisecond.
            let runtime = Handle::current();
            tasks.spawn_blocking(move || runtime.block_on(sending));
        } else {
            tasks.spawn(sending);
        }
    }
    let (mut senders, mut all) = (Vec::new(), Sent::default());
    while let Some(done) = tasks.join_next().await {
        let (sender, sent) = done??;
        all.messages += sent.messages;
        all.times.extend(sent.times);
        senders.push(sender);
    }
    Ok((senders, all))
}

//! How a connection ends, and how a peer is told why.

use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;

use corriere_core::provider::Command;
use futures_util::StreamExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::accepting::{Shared, told_to_stop};
use super::confirmations::Answer;
use super::connection::Connection;
use super::exceptions::Refusal;
use super::sessions::UNKNOWN;
use crate::codec::Structure;
use crate::codec::structures::{ConnectionError, JavaException};
use crate::link::{CommandReader, CommandWriter, LinkError};

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum Ending {
    /// The peer went, with `ShutdownInfo`.
    Left,
    /// Nothing more can be read.
    Broken(LinkError),
    /// Nothing more can be written.
    Unheard(LinkError),
    /// The task that writes has panicked.
    Panicked(JoinError),
    /// The peer is told this, and sent away.
    Refused(Refusal),
    /// The peer has its answer already, and is sent away.
    Answered,
    /// The same client has come again.
    Ousted,
    /// The acceptor stops.
    Stopping,
}

impl Ending {
    /// What the end of the task that writes is for the connection.
    pub(super) fn of_writing(written: Result<Result<(), LinkError>, JoinError>) -> Self {
        match written {
            Ok(Ok(())) => Self::Left,
            Ok(Err(error)) => Self::Unheard(error),
            Err(error) => Self::Panicked(error),
        }
    }

    /// Whether sends that wait for room may wait on when the connection is no more.
    fn lets_sends_wait(&self) -> bool {
        !matches!(self, Self::Ousted | Self::Stopping)
    }
}

impl Connection {
    /// Ends the connection: tells the peer, takes what it has still sent where that can be, closes, and waits for the sends that
    /// wait for room.
    pub(super) async fn end(
        mut self,
        ending: Ending,
        mut reader: CommandReader<OwnedReadHalf>,
        mut writer: JoinSet<Result<(), LinkError>>,
        mut stopping: watch::Receiver<bool>,
    ) {
        let peer = self.peer;
        let mut farewell = self.shared.options.farewell;
        let lets_sends_wait = ending.lets_sends_wait();
        let mut refusal = None;
        // Of a peer that went by itself, whether that was in order.
        let mut is_orderly = None;
        // Bytes that nobody has read when a socket closes may take with them what was written last.
        let mut is_sent_away = true;
        match ending {
            Ending::Left => {
                is_sent_away = false;
                is_orderly = Some(true);
            }
            Ending::Broken(LinkError::Closed) if self.introduced.is_none() || self.is_closed => {
                is_orderly = Some(true);
            }
            Ending::Broken(LinkError::Closed | LinkError::Truncated | LinkError::Io(_)) => {
                is_orderly = Some(false);
            }
            Ending::Broken(error) => {
                tracing::warn!(%peer, %error, "a connection is closed");
                let reason = match error {
                    // Most often it is tight all the same.
                    LinkError::Decode(error) => {
                        format!("{error}; expected the loose encoding without a cache, as was agreed on")
                    }
                    error => error.to_string(),
                };
                self.refuse_all(&Refusal::new(JavaException::Io, reason));
            }
            Ending::Unheard(error) => {
                tracing::warn!(%peer, %error, "a connection is closed, as nothing more can be written to the peer");
                self.take_the_rest(&mut reader, Instant::now() + farewell).await;
            }
            Ending::Panicked(error) => {
                tracing::error!(%peer, %error, "a connection is closed by a panic in the task that writes to the peer, which is a mistake in this broker");
                self.take_the_rest(&mut reader, Instant::now() + farewell).await;
            }
            Ending::Refused(reason) => {
                tracing::warn!(%peer, %reason, "a connection is closed");
                refusal = Some(reason);
            }
            Ending::Answered => {}
            Ending::Ousted => {
                tracing::info!(%peer, "a client has connected again; its older connection is closed");
                self.take_the_rest(&mut reader, Instant::now()).await;
            }
            Ending::Stopping => {
                // It is read until then.
                is_sent_away = false;
                farewell = self.shared.options.flush;
                tracing::debug!(%peer, "a connection is closed, as the broker stops");
                self.finish(&mut reader, Instant::now() + farewell).await;
            }
        }
        if let Some(refusal) = refusal {
            self.refuse_all(&refusal);
            self.take_acknowledgements(&mut reader, &refusal, Instant::now() + farewell).await;
        }
        let outliving = self.sends_may_wait().filter(|_| lets_sends_wait);
        self.leave(outliving.is_some());
        self.say_gone(is_orderly);
        self.close_ears();
        let closing = async move {
            let rest = async {
                while writer.join_next().await.is_some() {}
                if is_sent_away {
                    reader.discard().await;
                }
            };
            // Whether the peer has read it all is its own affair.
            let _ = timeout(farewell, rest).await;
        };
        let waiting = async {
            self.wait_for_sends(&mut stopping).await;
            drop(outliving);
            self.lost.say(peer);
        };
        tokio::join!(closing, waiting);
    }

    /// Says in the log that a peer went by itself, and what it left.
    fn say_gone(&self, is_orderly: Option<bool>) {
        let (peer, client_id, returned) = (self.peer, self.client_id(), self.returned);
        match is_orderly {
            Some(true) => tracing::debug!(%peer, client_id, returned, "a peer has left"),
            Some(false) => {
                tracing::warn!(%peer, client_id, returned, "a peer has gone without closing its connection");
            }
            None => {}
        }
    }

    /// Takes nothing more for the peer.
    fn close_ears(&mut self) {
        self.is_unheard = true;
        self.deliveries.close();
    }

    /// Tells the peer, unasked.
    fn refuse_all(&self, refusal: &Refusal) {
        self.refuse(Answer { command_id: 0, is_required: false }, refusal.clone());
    }

    /// Does what the peer has still sent, though it cannot hear of it any more, until there is nothing or the time is over.
    async fn take_the_rest(&mut self, reader: &mut CommandReader<OwnedReadHalf>, deadline: Instant) {
        self.close_ears();
        self.carry_out(reader, deadline, has_lasting_effect, |_| false).await;
    }

    /// Carries out what the peer has sent, answers it and closes our side, where that is done in time. Of the rest nothing is
    /// answered, and the peer is told nothing else: as with ActiveMQ, a client that fails over sends it again to the next broker,
    /// where an exception would end what it does. What comes later is carried out where nobody waits for an answer.
    async fn finish(&mut self, reader: &mut CommandReader<OwnedReadHalf>, deadline: Instant) {
        self.deliveries.hold_back();
        if self.introduced.is_some() {
            let is_idle = |connection: &Self| connection.unconfirmed.is_empty();
            self.carry_out(reader, deadline, has_lasting_effect, is_idle).await;
        }
        self.close_ears();
        if self.introduced.is_some() {
            self.carry_out(reader, deadline, is_told_once, |_| false).await;
        }
    }

    /// Carries out commands of these kinds, and hears what became of those that are under way, until nothing more has come and
    /// it is over, the peer has closed its side, or the time is over.
    async fn carry_out(
        &mut self,
        reader: &mut CommandReader<OwnedReadHalf>,
        deadline: Instant,
        takes: fn(&Structure) -> bool,
        is_over: fn(&Self) -> bool,
    ) {
        // The runtime looks what has arrived on the socket.
        tokio::task::yield_now().await;
        let bounds = self.shared.options.bounds;
        loop {
            let is_read = self.is_unheard || self.deliveries.unwritten.has_room(bounds);
            let has_room = is_read && self.under_way.has_room(bounds) || reader.is_within_a_large_frame();
            let done = tokio::select! {
                biased;
                Some(confirmed) = self.unconfirmed.next(), if !self.unconfirmed.is_empty() => {
                    self.confirmed(confirmed)
                }
                read = reader.next(), if has_room => match read {
                    Ok(structure) if takes(&structure) => self.command(structure).await,
                    Ok(_) => Ok(()),
                    Err(_) => return,
                },
                () = ready(()), if is_over(self) => return,
                () = sleep_until(deadline) => return,
            };
            if done.is_err() {
                return;
            }
        }
    }

    /// Takes the acknowledgements that the peer has sent, and refuses all else, until it has left or time is over.
    async fn take_acknowledgements(
        &mut self,
        reader: &mut CommandReader<OwnedReadHalf>,
        refusal: &Refusal,
        deadline: Instant,
    ) {
        let bounds = self.shared.options.bounds;
        loop {
            let next = tokio::select! {
                biased;
                Some(confirmed) = self.unconfirmed.next(), if !self.unconfirmed.is_empty() => {
                    // A second reason to end changes nothing.
                    let _ = self.confirmed(confirmed);
                    continue;
                }
                next = timeout_at(deadline, reader.next()) => next,
            };
            let Ok(Ok(structure)) = next else { return };
            let answer = Answer::to(&structure);
            match structure {
                Structure::MessageAck(ack) => {
                    let taken = self.acknowledge(&ack, answer);
                    if let Err(refusal) = taken
                        && self.deliveries.unwritten.has_room(bounds)
                    {
                        self.refuse(answer, refusal);
                    }
                }
                Structure::ShutdownInfo(_) => return,
                Structure::Message(message) if !answer.is_required => self.note_lost(&message, refusal),
                _ if answer.is_required && self.deliveries.unwritten.has_room(bounds) => {
                    self.refuse(answer, refusal.clone());
                }
                _ => {}
            }
        }
    }

    /// The place of sends that wait for room and would come to nothing with the connection, where there are any and there is
    /// such a place.
    fn sends_may_wait(&self) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(self.under_way.bytes()).ok().filter(|_| self.awaited > 0)?;
        Arc::clone(&self.shared.outliving).try_acquire_many_owned(bytes).ok()
    }

    /// Ends the provider's side, or all of it but the connection, where sends wait that would come to nothing with that. Of a
    /// peer that has not closed its connection, the oldest message of each consumer that was not acknowledged counts as
    /// delivered.
    fn leave(&mut self, sends_wait: bool) {
        if sends_wait && (self.is_closed || self.close_all(UNKNOWN).is_ok()) {
            return;
        }
        if let Some(introduced) = self.introduced.take()
            && !self.is_closed
            && !self.is_corriere
        {
            let state = self.deliveries.lock();
            let consumers = state.consumers.iter().filter(|(_, consumer)| !consumer.is_browser);
            let oldest: Vec<_> = consumers
                .filter_map(|(subscription, consumer)| Some((*subscription, consumer.ledger.oldest()?)))
                .collect();
            drop(state);
            for (subscription, number) in oldest {
                introduced.provider.tell(Command::HandedOver { subscription, number, mark: None });
            }
        }
        let consumers = std::mem::take(&mut self.deliveries.lock().consumers);
        for (subscription, consumer) in consumers {
            self.returned += self.transactions.returned(subscription, consumer);
        }
    }

    /// Waits until what the peer has sent is taken in or refused, which is no later than its deadline, unless the acceptor stops
    /// or the client comes again. Then it waits no longer than it takes to hear what became of it.
    async fn wait_for_sends(&mut self, stopping: &mut watch::Receiver<bool>) {
        let oust = Arc::clone(&self.oust);
        if self.introduced.is_some() {
            tokio::select! {
                biased;
                () = told_to_stop(stopping) => {}
                () = oust.notified() => {}
                () = self.hear_of_sends() => {}
            }
            self.introduced = None;
        }
        let _ = timeout(self.shared.options.flush, self.hear_of_sends()).await;
    }

    async fn hear_of_sends(&mut self) {
        while self.awaited > 0
            && let Some(confirmed) = self.unconfirmed.next().await
        {
            // A second reason to end changes nothing.
            let _ = self.confirmed(confirmed);
        }
    }
}

/// Whether a command of a connection that ends does anything that outlasts it: nobody would have what came of the others.
fn has_lasting_effect(command: &Structure) -> bool {
    !matches!(command, Structure::ConnectionInfo(_) | Structure::ConsumerInfo(_) | Structure::MessagePull(_))
}

/// Whether a peer sends a command once, whatever becomes of its connection: one for whose answer it does not wait.
fn is_told_once(command: &Structure) -> bool {
    matches!(command, Structure::Message(_) | Structure::MessageAck(_)) && !command.response_required()
}

/// Tells a peer with whom no wire format could be agreed on, in the format of the first frame, and closes.
pub(super) async fn greet_in_vain(
    shared: &Shared,
    mut reader: CommandReader<OwnedReadHalf>,
    mut writer: CommandWriter<OwnedWriteHalf>,
    peer: SocketAddr,
    error: &LinkError,
) {
    // Who looks whether somebody listens closes with our first word unread, which is a reset.
    if matches!(error, LinkError::Closed | LinkError::Io(_)) {
        tracing::debug!(%peer, %error, "a peer has left before it said how it speaks");
        return;
    }
    tracing::warn!(%peer, %error, "a connection is refused");
    let refusal = Refusal::new(JavaException::Io, error);
    say_and_close(shared, &mut reader, &mut writer, refusal).await;
}

/// Tells a peer that it is one too many.
pub(super) async fn refuse(shared: Arc<Shared>, stream: TcpStream, reason: String) {
    let (read, write) = stream.into_split();
    let mut reader = CommandReader::new(read, 0);
    let mut writer = CommandWriter::new(write);
    let Ok(info) = shared.address.preferences.info() else { return };
    if writer.put(&info.into()).is_ok() {
        let refusal = Refusal::new(JavaException::ResourceAllocation, reason);
        say_and_close(&shared, &mut reader, &mut writer, refusal).await;
    }
}

async fn say_and_close(
    shared: &Shared,
    reader: &mut CommandReader<OwnedReadHalf>,
    writer: &mut CommandWriter<OwnedWriteHalf>,
    refusal: Refusal,
) {
    let exception = Some(refusal.into_throwable());
    let error = ConnectionError { exception, ..ConnectionError::default() };
    let saying = async {
        writer.put(&error.into())?;
        writer.flush().await?;
        writer.shutdown().await?;
        reader.discard().await;
        Ok::<_, LinkError>(())
    };
    // Whether it was read is for the peer to know.
    let _ = timeout(shared.options.farewell, saying).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_of_the_task_that_writes_is_no_goodbye() {
        let mut writer: JoinSet<Result<(), LinkError>> = JoinSet::new();
        writer.spawn(async { panic!("it cannot write {}", 7) });
        let Ending::Panicked(error) = Ending::of_writing(writer.join_next().await.unwrap()) else {
            panic!("it is another ending");
        };
        assert!(error.to_string().contains("it cannot write 7"), "{error}");
        writer.spawn(async { Err(LinkError::Closed) });
        let ending = Ending::of_writing(writer.join_next().await.unwrap());
        assert!(matches!(ending, Ending::Unheard(LinkError::Closed)));
    }
}

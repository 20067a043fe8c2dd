//! The task of a connection: it reads, calls the sink, and minds what is due; the writer runs within it.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use corriere_core::provider::{Confirmation, DeliverySink, ProviderError};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, sleep, sleep_until};

use super::connecting::Link;
use super::connection::Shared;
use super::state::{Effects, Outgoing};
use crate::link::{CommandReader, CommandWriter, LinkError, Outbox, write_out};

/// How long a peer has to take leave when all was written.
const GOODBYE: Duration = Duration::from_secs(5);
/// How long a close may take at most; ActiveMQ's own client waits as long.
const CLOSE: Duration = Duration::from_secs(15);
/// How many commands are read before the client is told of them.
const BATCH: usize = 256;

/// Reads and writes until the connection ends, and says so. Aborted, it closes the socket as if the machine had died.
pub(super) async fn run(
    shared: Arc<Shared>,
    outbox: Arc<Outbox<Outgoing>>,
    link: Link,
    sink: Arc<dyn DeliverySink>,
) {
    let Link { mut reader, writer, agreement } = link;
    // A word in each third of the time in which one must have been read.
    let keep_alive = agreement.maximum_inactivity.map(|limit| limit / 3);
    let end = tokio::select! {
        end = read(&shared, &mut reader, &*sink) => end,
        end = write(&shared, &outbox, writer, keep_alive) => end,
        end = close(&shared) => end,
    };
    let mut state = shared.state();
    if !state.is_closing && state.ended().is_none() {
        tracing::warn!(peer = state.peer.url, error = %end, "the connection is lost");
    }
    state.end(ProviderError::Lost);
    let effects = std::mem::take(&mut state.effects);
    drop(state);
    tell(effects, &*sink);
}

/// Takes what comes until nothing can.
async fn read(
    shared: &Shared,
    reader: &mut CommandReader<OwnedReadHalf>,
    sink: &dyn DeliverySink,
) -> LinkError {
    loop {
        let first = {
            let next = reader.next();
            tokio::pin!(next);
            // Waking up for something else must not begin the time of silence anew.
            loop {
                let due = shared.state().next_due();
                tokio::select! {
                    biased;
                    () = shared.changed.notified() => attend(shared, sink),
                    () = moment(due) => attend(shared, sink),
                    structure = &mut next => break structure,
                }
            }
        };
        let mut next = first.map(Some);
        for _ in 0..BATCH {
            match next {
                Ok(Some(structure)) => shared.state().receive(structure),
                Ok(None) => break,
                Err(error) => return error,
            }
            next = reader.next_here();
        }
        attend(shared, sink);
        match next {
            // One more than a batch was there already.
            Ok(Some(structure)) => shared.state().receive(structure),
            Ok(None) => {}
            Err(error) => return error,
        }
    }
}

/// Delivers what is due, and tells the client what is new. Nobody else calls the sink.
fn attend(shared: &Shared, sink: &dyn DeliverySink) {
    let mut state = shared.state();
    for subscription in state.take_due(Instant::now()) {
        state.deliver(subscription);
    }
    let effects = std::mem::take(&mut state.effects);
    drop(state);
    tell(effects, sink);
}

/// What was delivered comes before what is confirmed by it.
fn tell(effects: Effects, sink: &dyn DeliverySink) {
    let Effects { deliveries, events, confirmed } = effects;
    if !deliveries.is_empty() {
        sink.deliver(deliveries);
    }
    for event in events {
        sink.notify(event);
    }
    for (confirmer, outcome) in confirmed {
        confirmer.confirm(outcome);
    }
}

async fn moment(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}

/// Ends a connection that was closed, and that a peer which neither reads nor speaks would keep.
async fn close(shared: &Shared) -> LinkError {
    shared.closing.notified().await;
    sleep(CLOSE).await;
    LinkError::Closed
}

/// Writes what is put into the outbox, until it is closed and the peer had its time to take leave.
async fn write(
    shared: &Shared,
    outbox: &Outbox<Outgoing>,
    mut writer: CommandWriter<OwnedWriteHalf>,
    keep_alive: Option<Duration>,
) -> LinkError {
    let put = |outgoing, writer: &mut CommandWriter<OwnedWriteHalf>| {
        put(shared, outgoing, writer);
        Ok(())
    };
    let written = match write_out(outbox, &mut writer, keep_alive, put).await {
        Ok(()) => writer.shutdown().await,
        Err(error) => Err(error),
    };
    if let Err(error) = written {
        return error;
    }
    sleep(GOODBYE).await;
    LinkError::Closed
}

/// What cannot be written concerns who wanted it written, and not the connection.
fn put(shared: &Shared, outgoing: Outgoing, writer: &mut CommandWriter<OwnedWriteHalf>) {
    let Outgoing { structure, written } = outgoing;
    let outcome = writer.put(&structure).map(|()| Confirmation::Done).map_err(|error| {
        ProviderError::Refused { exception: "this side".to_owned(), reason: error.to_string() }
    });
    match (written, outcome) {
        (Some(confirmer), outcome) => confirmer.confirm(outcome),
        (None, Ok(_)) => {}
        (None, Err(error)) => {
            shared.state().not_written(structure.command_id().unwrap_or_default(), error);
            shared.changed.notify_one();
        }
    }
}

//! The listening socket, and the connections that come of it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use corriere_core::ConnectionId;
use corriere_core::provider::Provider;
use tokio::net::{TcpListener, TcpSocket, TcpStream, lookup_host};
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::address::{BindError, ListenAddress, Options, not_loopback};
use super::advisories::Advisor;
use super::connection::serve;
use super::ending::refuse;
use super::parking::Bounds;
use super::registry::Registry;
use crate::link::{FrameRoom, SMALL};
use crate::redelivery;

/// How an acceptor treats its peers, where its address does not say so.
#[derive(Clone, Debug)]
pub struct AcceptorOptions {
    /// The name that the broker gives of itself.
    pub broker_name: Arc<str>,
    /// What one peer may have under way before nothing more is read from it.
    pub bounds: Bounds,
    /// How long a peer that is sent away has to read why.
    pub farewell: Duration,
    /// How long a stop waits for what is still to be written.
    pub flush: Duration,
    /// Bytes that may have come of large frames, of more than 64 KiB, of all peers together that are not complete. Beyond that one
    /// frame at a time goes on to its end, whatever its size, and all others wait.
    pub unfinished: usize,
    /// Bytes of sends that may wait for room in the broker when their peers are gone, of all those together. Beyond that they
    /// are refused when the connection ends, and the log names them.
    pub outliving: usize,
}

impl Default for AcceptorOptions {
    fn default() -> Self {
        Self {
            broker_name: "localhost".into(),
            bounds: Bounds::default(),
            farewell: Duration::from_secs(2),
            flush: Duration::from_millis(500),
            unfinished: 32 * 1024 * 1024,
            outliving: 16 * 1024 * 1024,
        }
    }
}

/// A listening socket and its connections. Dropping it ends them all, as [`Acceptor::stop`] does, without waiting.
#[derive(Debug)]
pub struct Acceptor {
    shared: Arc<Shared>,
    local_address: SocketAddr,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

/// What all connections of an acceptor share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) provider: Arc<dyn Provider>,
    pub(super) options: AcceptorOptions,
    pub(super) address: Options,
    pub(super) advisor: Advisor,
    pub(super) registry: Arc<Registry>,
    /// Where the large frames of all peers arrive.
    pub(super) frame_room: FrameRoom,
    /// Bytes for sends of peers that are gone.
    pub(super) outliving: Arc<Semaphore>,
    pub(super) stopping: watch::Sender<bool>,
}

/// How many connections the system keeps until they are accepted, where it allows so many; ActiveMQ's number. One too
/// many has to ask again, a second later, and then every two and four.
const BACKLOG: u32 = 5_000;

/// How many bytes a frame may have before the peer is known: what introduces it is small. No address may allow less later.
pub(super) const FIRST_FRAMES: usize = SMALL;

/// How many peers may be told at once that there are too many; more are not told.
const REFUSED_AT_ONCE: usize = 64;

impl Acceptor {
    /// Listens on `url`: `tcp://HOST:PORT`, port 0 for a free one, with options as ActiveMQ writes them:
    /// `maximumConnections`, `wireFormat.maxFrameSize`, `wireFormat.maxInactivityDuration` (0 for none),
    /// `wireFormat.maxInactivityDurationInitalDelay`, `wireFormat.stackTraceEnabled`, `wireFormat.tcpNoDelayEnabled`.
    ///
    /// To be called within a tokio runtime, whose tasks serve the connections.
    ///
    /// # Errors
    /// [`BindError`]; an address that other machines reach is refused, as there are no users yet.
    pub async fn bind(
        url: &str,
        provider: Arc<dyn Provider>,
        options: AcceptorOptions,
    ) -> Result<Self, BindError> {
        let ListenAddress { url, target, options: mut address } = ListenAddress::parse(url)?;
        let failed = |error| BindError::Io { url: url.clone(), error };
        let candidates: Vec<SocketAddr> = lookup_host(&target).await.map_err(failed)?.collect();
        if let Some(refused) = not_loopback(&url, &candidates) {
            return Err(refused);
        }
        let listener = listen(&candidates).map_err(failed)?;
        let local_address = listener.local_addr().map_err(failed)?;
        redelivery::announce(&mut address.preferences.others);
        let identity = ConnectionId::unique();
        let advisor = Advisor::new(
            identity.as_str(),
            Arc::clone(&options.broker_name),
            &format!("tcp://{local_address}"),
        );
        let frame_room = FrameRoom::new(options.unfinished);
        let outliving = Arc::new(Semaphore::new(options.outliving.min(Semaphore::MAX_PERMITS)));
        let shared = Arc::new(Shared {
            provider,
            options,
            address,
            advisor,
            registry: Arc::default(),
            frame_room,
            outliving,
            stopping: watch::Sender::new(false),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { shared, local_address, accepting: Mutex::new(Some(accepting)) })
    }

    /// All that is wrong with a URL to listen on, as far as that can be said without listening and without asking for its
    /// host; nothing where it is right.
    #[must_use]
    pub fn mistakes(url: &str) -> Vec<BindError> {
        ListenAddress::mistakes(url)
    }

    /// Where it listens, with the port that it has.
    #[must_use]
    pub fn url(&self) -> String {
        format!("tcp://{}", self.local_address)
    }

    /// Where it listens.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    /// Takes no more connections, carries out and answers what the peers have sent, and closes the sockets without a word, as
    /// ActiveMQ does: clients that fail over send again what was not answered. It is done after a second at the latest, whatever the peers do; another call waits for the
    /// first one. Dropping the future leaves the rest to the tasks.
    pub async fn stop(&self) {
        self.shared.stopping.send_replace(true);
        let mut accepting = self.accepting.lock().await;
        if let Some(task) = accepting.as_mut() {
            // It ends by itself, in time.
            let _ = task.await;
            *accepting = None;
        }
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.shared.stopping.send_replace(true);
    }
}

/// Ends when the acceptor is to stop.
pub(super) async fn told_to_stop(stopping: &mut watch::Receiver<bool>) {
    // Without an acceptor there is nothing to go on for either.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// Listens on the first address where that is possible.
fn listen(candidates: &[SocketAddr]) -> io::Result<TcpListener> {
    let mut failure = io::Error::new(io::ErrorKind::InvalidInput, "the host has no address");
    for candidate in candidates {
        match listen_on(*candidate) {
            Ok(listener) => return Ok(listener),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Where connections of the last process are still waiting out their end. Elsewhere it would let two listen on one port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut stopping = shared.stopping.subscribe();
    let mut connections = JoinSet::new();
    let mut refused = JoinSet::new();
    let mut is_failing = false;
    loop {
        tokio::select! {
            biased;
            () = told_to_stop(&mut stopping) => break,
            Some(ended) = connections.join_next(), if !connections.is_empty() => ended_in_order(ended),
            Some(_) = refused.join_next(), if !refused.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    if std::mem::take(&mut is_failing) {
                        tracing::info!("connections are accepted again");
                    }
                    take(&shared, stream, peer, &mut connections, &mut refused);
                }
                Err(error) => {
                    // Out of file descriptors, most likely, and at once again: it is said once.
                    if std::mem::replace(&mut is_failing, true) {
                        tracing::debug!(%error, "still no connection can be accepted");
                    } else {
                        tracing::warn!(%error, "no connection can be accepted");
                    }
                    sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    drop(listener);
    refused.abort_all();
    let all = async {
        while let Some(ended) = connections.join_next().await {
            ended_in_order(ended);
        }
    };
    // Each connection keeps to this by itself: once for what still comes, once for what is to be written.
    if timeout(shared.options.flush.saturating_mul(2), all).await.is_err() {
        connections.shutdown().await;
    }
}

/// Says when the task of a connection has not.
fn ended_in_order(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection has ended by a panic, which is a mistake in this broker");
    }
}

fn take(
    shared: &Arc<Shared>,
    stream: TcpStream,
    peer: SocketAddr,
    connections: &mut JoinSet<()>,
    refused: &mut JoinSet<()>,
) {
    match shared.address.maximum_connections {
        Some(maximum) if connections.len() >= maximum => {
            tracing::warn!(%peer, maximum, "a connection is refused: there are as many as are allowed (maximumConnections)");
            if refused.len() < REFUSED_AT_ONCE {
                refused.spawn(refuse(
                    Arc::clone(shared),
                    stream,
                    format!(
                        "there are {maximum} connections already, as many as are allowed (maximumConnections)"
                    ),
                ));
            }
        }
        _ => {
            connections.spawn(serve(Arc::clone(shared), stream, peer));
        }
    }
}

//! A cable between a client and a broker, which a test can cut.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// The address of a broker that stays the same whatever becomes of the broker. The connections that lead there end with
/// the cable.
#[derive(Debug)]
pub(crate) struct Cable {
    address: SocketAddr,
    ways: watch::Sender<Ways>,
    carrying: AbortHandle,
}

/// What becomes of connections.
#[derive(Clone, Copy, Debug, Default)]
struct Ways {
    /// Where new ones lead; nowhere means that they are closed at once.
    to: Option<SocketAddr>,
    /// Raised to end those that there are.
    cut: u64,
    /// Nothing is carried any more, and nobody is told.
    is_dead: bool,
    /// Ended after so many bytes to the broker.
    up: Option<usize>,
    /// Ended after so many bytes to the client.
    down: Option<usize>,
}

impl Cable {
    /// To the broker at `tcp://HOST:PORT`.
    pub(crate) async fn to(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (ways, watched) = watch::channel(Ways { to: Some(address_of(url)), ..Ways::default() });
        let carrying = tokio::spawn(carry(listener, watched)).abort_handle();
        Self { address, ways, carrying }
    }

    /// The address of this end.
    pub(crate) fn url(&self) -> String {
        format!("tcp://{}", self.address)
    }

    /// Ends all connections, without a word. New ones can be made.
    pub(crate) fn cut(&self) {
        self.ways.send_modify(|ways| ways.cut += 1);
    }

    /// Ends all connections, and new ones as well until the cable leads somewhere again.
    pub(crate) fn unplug(&self) {
        self.ways.send_modify(|ways| {
            ways.to = None;
            ways.cut += 1;
        });
    }

    /// From now on new connections lead to the broker at `tcp://HOST:PORT`.
    pub(crate) fn plug_into(&self, url: &str) {
        self.ways.send_modify(|ways| ways.to = Some(address_of(url)));
    }

    /// Carries nothing more over the connections that there are, and ends none.
    pub(crate) fn deaden(&self) {
        self.ways.send_modify(|ways| ways.is_dead = true);
    }

    /// Ends the connection that carries so many more bytes to the broker, after them.
    pub(crate) fn cut_after_sending(&self, bytes: usize) {
        self.ways.send_modify(|ways| ways.up = Some(bytes));
    }

    /// Ends the connection that carries so many more bytes to the client, after them.
    pub(crate) fn cut_after_receiving(&self, bytes: usize) {
        self.ways.send_modify(|ways| ways.down = Some(bytes));
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.carrying.abort();
    }
}

fn address_of(url: &str) -> SocketAddr {
    url.strip_prefix("tcp://").unwrap().parse().unwrap()
}

async fn carry(listener: TcpListener, ways: watch::Receiver<Ways>) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let Some(to) = ways.borrow().to else { continue };
        let Ok(broker) = TcpStream::connect(to).await else { continue };
        let (from_client, to_client) = client.into_split();
        let (from_broker, to_broker) = broker.into_split();
        let mut ending = ways.clone();
        let cut = ending.borrow().cut;
        let (up, down) = (ways.clone(), ways.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = carry_one_way(from_client, to_broker, up, |ways| &mut ways.up) => {}
                () = carry_one_way(from_broker, to_client, down, |ways| &mut ways.down) => {}
                _ = ending.wait_for(|ways| ways.cut != cut) => {}
            }
        });
    }
}

/// Until one end is closed, or the bytes are used up.
async fn carry_one_way(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    ways: watch::Receiver<Ways>,
    budget: impl Fn(&mut Ways) -> &mut Option<usize>,
) {
    let mut buffer = vec![0; 16 * 1024];
    // What was carried since there is a budget.
    let mut carried = 0;
    loop {
        let Ok(read @ 1..) = from.read(&mut buffer).await else { return };
        let mut now = *ways.borrow();
        if now.is_dead {
            return std::future::pending().await;
        }
        let left = budget(&mut now).map(|bytes| bytes.saturating_sub(carried));
        let part = left.map_or(read, |left| left.min(read));
        if to.write_all(buffer.get(..part).unwrap_or_default()).await.is_err() || part < read {
            return;
        }
        carried += left.map_or(0, |_| part);
    }
}

//! A line between a client and the broker that can be cut, as a network fails: without a word, with what is on its way lost.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Where the broker listens at the moment, if it does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Address(Arc<Mutex<Option<SocketAddr>>>);

impl Address {
    pub(crate) fn set(&self, address: Option<SocketAddr>) {
        *self.0.lock().unwrap() = address;
    }

    fn get(&self) -> Option<SocketAddr> {
        *self.0.lock().unwrap()
    }
}

/// The line of one client.
#[derive(Debug)]
pub(crate) struct Line {
    port: u16,
    cuts: watch::Sender<u64>,
    accepting: JoinHandle<()>,
}

impl Line {
    pub(crate) async fn lay(to: Address) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let cuts = watch::Sender::new(0);
        let told = cuts.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, to.clone(), told.subscribe()));
            }
        });
        Self { port, cuts, accepting }
    }

    pub(crate) fn url(&self) -> String {
        format!("tcp://127.0.0.1:{}", self.port)
    }

    /// Ends the connections that there are.
    pub(crate) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn carry(mut client: TcpStream, to: Address, mut cuts: watch::Receiver<u64>) {
    let Some(address) = to.get() else { return };
    let Ok(mut broker) = TcpStream::connect(address).await else { return };
    // Small packets go at once, as they do without a line between.
    _ = client.set_nodelay(true);
    _ = broker.set_nodelay(true);
    // Whoever ends it, and however, the sockets are dropped with what they still hold.
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut broker) => {}
        _ = cuts.changed() => {}
    }
}

//! What the acceptor says in the log.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Mutex, Once};

use tracing::Level;

/// What was logged at all, by whichever test.
static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// From here on warnings are kept.
pub(crate) fn log() {
    log_to(Level::WARN);
}

/// From here on what is logged is kept to this level, if nobody has said so before.
pub(crate) fn log_to(level: Level) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_max_level(level).with_writer(|| Log);
        tracing::subscriber::set_global_default(subscriber.finish()).unwrap();
    });
}

/// All that was logged.
pub(crate) fn logged() -> String {
    String::from_utf8(LOG.lock().unwrap().clone()).unwrap()
}

/// What was logged of a peer.
pub(crate) fn logged_of(peer: SocketAddr) -> Vec<String> {
    let log = logged();
    let of_peer = format!("peer={peer} ");
    log.lines().filter(|line| line.contains(&of_peer)).map(str::to_owned).collect()
}

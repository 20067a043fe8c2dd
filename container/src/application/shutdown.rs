//! The signals that end a program.

use super::Error;

/// Ctrl-C and SIGTERM.
#[cfg(unix)]
#[derive(Debug)]
pub(super) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// From now on the signals no longer end the process by themselves.
    pub(super) fn listen() -> Result<Self, Error> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(Error::Signals)?,
            terminate: signal(SignalKind::terminate()).map_err(Error::Signals)?,
        })
    }

    /// The name of the next signal. Dropping the future loses none.
    pub(super) async fn next(&mut self) -> Result<&'static str, Error> {
        tokio::select! {
            _ = self.interrupt.recv() => Ok("SIGINT"),
            _ = self.terminate.recv() => Ok("SIGTERM"),
        }
    }
}

/// Ctrl-C.
#[cfg(not(unix))]
#[derive(Debug)]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(super) fn listen() -> Result<Self, Error> {
        Ok(Self)
    }

    /// The name of the next signal.
    pub(super) async fn next(&mut self) -> Result<&'static str, Error> {
        tokio::signal::ctrl_c().await.map_err(Error::Signals)?;
        Ok("Ctrl-C")
    }
}

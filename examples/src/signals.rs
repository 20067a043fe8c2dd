//! The signals that ask a program to end.

use std::io;

/// Takes Ctrl-C and SIGTERM over: from now on they no longer end the process by themselves. The future waits for the
/// first and has its name; dropping it loses what comes later.
///
/// # Errors
/// When the system does not let the program listen.
#[cfg(unix)]
pub fn end_signal() -> io::Result<impl Future<Output = &'static str>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
        }
    })
}

/// Takes Ctrl-C over: from now on it no longer ends the process by itself. The future waits for it and has its name;
/// dropping it loses what comes later.
///
/// # Errors
/// When the system does not let the program listen.
#[cfg(windows)]
pub fn end_signal() -> io::Result<impl Future<Output = &'static str>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupt.recv().await;
        "Ctrl-C"
    })
}

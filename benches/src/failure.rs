//! Why there is no figure.

use std::io;
use std::path::{Path, PathBuf};

use corriere::broker::StartError;
use corriere::broker::journal::OpenError;
use corriere::core::DestinationError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Failure {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} lies in memory (tmpfs), not on a disk; name another --directory", .0.display())]
    InMemory(PathBuf),
    #[error("`{command}` could not be run: {source}")]
    Start { command: String, source: io::Error },
    #[error("`{command}` ended with {status}: {said}")]
    Ended { command: String, status: std::process::ExitStatus, said: String },
    #[error("`{command}` printed `{line}` where one line of JSON was expected")]
    Output { command: String, line: String },
    #[error("{what} is not there; {hint}")]
    Missing { what: String, hint: &'static str },
    #[error("{command} says nothing of `{field}`")]
    NoField { command: String, field: &'static str },
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Broker(#[from] StartError),
    #[error(transparent)]
    Journal(#[from] OpenError),
    #[error(transparent)]
    Listen(#[from] corriere::openwire::acceptor::BindError),
    #[error(transparent)]
    Application(#[from] corriere::Error),
    #[error(transparent)]
    Client(#[from] corriere::core::Error),
    #[error(transparent)]
    Destination(#[from] DestinationError),
    #[error("a task of the measurement did not come to its end: {0}")]
    Task(#[from] tokio::task::JoinError),
    #[error("{0}")]
    Received(String),
}

impl Failure {
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.to_path_buf(), source }
    }
}

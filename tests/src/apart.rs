//! A runtime beside that of the test, for a client that is to share no thread with its broker.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

use std::future::Future;

use tokio::runtime::{Builder, Runtime};

/// A runtime with one thread of its own. When this goes, so does what runs there, and nobody waits for it.
#[derive(Debug)]
pub struct Apart(Option<Runtime>);

impl Apart {
    /// Starts it.
    #[must_use]
    pub fn start() -> Self {
        Self(Some(Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()))
    }

    /// Does something there, and waits for what comes of it.
    pub async fn run<F>(&self, future: F) -> F::Output
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.0.as_ref().unwrap().spawn(future).await.unwrap()
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

//! What stands in for the embedded broker in a program that is built without it.

use std::convert::Infallible;
use std::future::pending;

use corriere_core::Clock;

use super::Error;
use crate::config::{BrokerTable, Problems};

/// A broker that there never is.
#[derive(Debug)]
pub(super) struct Embedded(Infallible);

impl Embedded {
    pub(super) fn check(_table: &BrokerTable, _problems: &mut Problems) {}

    #[expect(clippy::unused_async, reason = "starting a broker takes time")]
    pub(super) async fn start(_table: &BrokerTable, _clock: Clock) -> Result<Self, Error> {
        Err(Error::NotEmbedded)
    }

    pub(super) fn listen_urls(&self) -> Vec<String> {
        match self.0 {}
    }

    #[expect(clippy::unused_async, reason = "stopping a broker takes time")]
    pub(super) async fn stop(self) {
        match self.0 {}
    }
}

/// The failure of the broker, which never comes.
#[derive(Debug)]
pub(super) struct Failure;

impl Failure {
    pub(super) fn of(_broker: Option<&Embedded>) -> Self {
        Self
    }

    pub(super) async fn comes(&mut self) {
        pending::<()>().await;
    }

    #[expect(clippy::unused_async, reason = "asking a broker takes time")]
    pub(super) async fn into_result(self) -> Result<(), Error> {
        Ok(())
    }
}

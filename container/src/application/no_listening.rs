//! What stands in for the acceptors in a program that is built without a wire.

use corriere_broker::Broker;

use super::Error;
use crate::config::{BrokerTable, ConfigError, Problems};

/// Acceptors that there never are.
#[derive(Debug, Default)]
pub(super) struct Listening;

impl Listening {
    /// Refuses to listen anywhere.
    pub(super) fn check(table: &BrokerTable, problems: &mut Problems) {
        if let Some(listen) = table.listen.as_ref().filter(|listen| !listen.value.is_empty()) {
            problems.push(ConfigError::NoOpenWire { place: listen.place.clone() });
        }
    }

    #[expect(clippy::unused_async, reason = "listening takes time")]
    pub(super) async fn start(_table: &BrokerTable, _broker: &Broker) -> Result<Self, Error> {
        Ok(Self)
    }

    pub(super) fn urls(&self) -> Vec<String> {
        Vec::new()
    }

    #[expect(clippy::unused_async, reason = "ending connections takes time")]
    pub(super) async fn stop(self) {}
}

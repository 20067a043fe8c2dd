//! What stands in for the acceptors in a program that is built without a wire.

use corriere_broker::Broker;

use super::Error;
use crate::config::BrokerTable;

/// Acceptors that there never are.
#[derive(Debug, Default)]
pub(super) struct Listening;

impl Listening {
    #[expect(clippy::unused_async, reason = "listening takes time")]
    pub(super) async fn start(table: &BrokerTable, _broker: &Broker) -> Result<Self, Error> {
        match &table.listen {
            Some(listen) if !listen.value.is_empty() => {
                Err(Error::NoOpenWire { place: listen.place.clone() })
            }
            _ => Ok(Self),
        }
    }

    pub(super) fn urls(&self) -> Vec<String> {
        Vec::new()
    }

    #[expect(clippy::unused_async, reason = "ending connections takes time")]
    pub(super) async fn stop(self) {}
}

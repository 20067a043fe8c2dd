//! Where the embedded broker listens for clients of other processes.

use std::sync::Arc;

use corriere_broker::Broker;
use corriere_openwire::acceptor::{Acceptor, AcceptorOptions};

use super::Error;
use crate::config::{BrokerTable, ConfigError, Problems};

/// The acceptors of a broker; dropping them ends them without a word to their clients.
#[derive(Debug, Default)]
pub(super) struct Listening {
    acceptors: Vec<Acceptor>,
}

impl Listening {
    /// Says what is wrong with the addresses, as far as that can be said before there is a broker.
    pub(super) fn check(table: &BrokerTable, problems: &mut Problems) {
        let Some(listen) = &table.listen else { return };
        for address in &listen.value {
            for error in Acceptor::mistakes(address) {
                problems.push(ConfigError::Listen {
                    place: listen.place.within(address),
                    error: Box::new(error),
                });
            }
        }
    }

    /// Listens wherever the table says. When it cannot somewhere, it does nowhere.
    pub(super) async fn start(table: &BrokerTable, broker: &Broker) -> Result<Self, Error> {
        let mut listening = Self::default();
        let Some(listen) = &table.listen else { return Ok(listening) };
        for address in &listen.value {
            let options =
                AcceptorOptions { broker_name: table.name.as_str().into(), ..AcceptorOptions::default() };
            match Acceptor::bind(address, Arc::new(broker.clone()), options).await {
                Ok(acceptor) => {
                    tracing::info!("broker `{}` listens on {}", table.name, acceptor.url());
                    listening.acceptors.push(acceptor);
                }
                Err(error) => {
                    listening.stop().await;
                    return Err(Error::Listen { place: listen.place.clone(), error: Box::new(error) });
                }
            }
        }
        Ok(listening)
    }

    /// The addresses with the ports that they were given.
    pub(super) fn urls(&self) -> Vec<String> {
        self.acceptors.iter().map(Acceptor::url).collect()
    }

    /// Ends all connections in order.
    pub(super) async fn stop(self) {
        for acceptor in &self.acceptors {
            acceptor.stop().await;
        }
    }
}

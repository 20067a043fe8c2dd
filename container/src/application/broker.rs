//! The embedded broker of an application.

use corriere_core::Clock;

use super::Error;
use crate::config::BrokerTable;

/// A broker that lives as long as the application; dropping it stops it.
#[derive(Debug)]
pub(super) struct Embedded {
    #[cfg(feature = "embedded")]
    pub(super) broker: corriere_broker::Broker,
}

#[cfg(feature = "embedded")]
impl Embedded {
    pub(super) fn start(table: &BrokerTable, clock: Clock) -> Result<Self, Error> {
        let store = std::sync::Arc::new(corriere_broker::store::MemoryStore);
        let broker = corriere_broker::Broker::start(&table.name, settings(table), store, clock)?;
        tracing::info!("broker `{}` started; it keeps messages in memory", table.name);
        Ok(Self { broker })
    }
}

#[cfg(feature = "embedded")]
impl Drop for Embedded {
    fn drop(&mut self) {
        self.broker.stop();
        tracing::info!("broker `{}` stopped", self.broker.name());
    }
}

/// The broker's settings: what the table says, over the broker's own defaults.
#[cfg(feature = "embedded")]
pub(crate) fn settings(table: &BrokerTable) -> corriere_broker::Settings {
    use corriere_broker::{DeadLetters, Settings};

    use crate::config::DeadLetterKind;

    let default = Settings::default();
    Settings {
        memory_limit: table.memory_limit.unwrap_or(default.memory_limit),
        send_deadline: table.send_deadline.unwrap_or(default.send_deadline),
        redelivery: table.redelivery.clone(),
        dead_letters: match table.dead_letters {
            None => default.dead_letters,
            Some(DeadLetterKind::Individual) => DeadLetters::Individual,
            Some(DeadLetterKind::Shared) => DeadLetters::Shared,
            Some(DeadLetterKind::Discard) => DeadLetters::Discard,
        },
        dead_letter_non_persistent: table
            .dead_letter_non_persistent
            .unwrap_or(default.dead_letter_non_persistent),
    }
}

#[cfg(not(feature = "embedded"))]
impl Embedded {
    pub(super) fn start(_table: &BrokerTable, _clock: Clock) -> Result<Self, Error> {
        Err(Error::NotEmbedded)
    }
}

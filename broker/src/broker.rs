//! The edge: a broker with a clock, a store and connections.

use std::sync::Arc;

use corriere_core::{Clock, Destination};

use crate::counts::Counts;
use crate::settings::Settings;
use crate::store::MessageStore;

/// A running broker, reachable in this process as `vm://<name>`. Clones are the same broker; it stops when
/// [`Broker::stop`] is called or the last clone and connection are gone.
#[derive(Clone, Debug)]
pub struct Broker;

impl Broker {
    /// Starts a broker. To be called within a tokio runtime.
    ///
    /// # Errors
    /// When a broker of this name runs in this process already.
    pub fn start(
        _name: &str,
        _settings: Settings,
        _store: Arc<dyn MessageStore>,
        _clock: Clock,
    ) -> Result<Self, StartError> {
        todo!()
    }

    /// The name under which `vm:` finds it.
    #[must_use]
    pub fn name(&self) -> &str {
        todo!()
    }

    /// What became of the messages of a destination; `None` when there is none of that name.
    #[must_use]
    pub fn counts(&self, _destination: &Destination) -> Option<Counts> {
        todo!()
    }

    /// All destinations that exist, in the order of their names.
    #[must_use]
    pub fn destinations(&self) -> Vec<Destination> {
        todo!()
    }

    /// Ends all connections, as lost, and frees the name.
    pub fn stop(&self) {
        todo!()
    }
}

/// Why a broker did not start.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// The name is taken.
    #[error("a broker named `{name}` runs in this process already")]
    NameInUse {
        /// The name.
        name: String,
    },
}

//! Temporary destinations, and word of them.

use std::sync::Arc;

use corriere_core::Destination;
use corriere_core::provider::{Confirmation, ProviderError, Receipt};

use super::error::About;
use super::state::{State, Then};
use crate::codec::structures::{
    ConsumerId, ConsumerInfo, Destination as WireDestination, DestinationInfo, DestinationOperation,
};

/// The session that is there without being opened.
const DEFAULT_SESSION: i64 = -1;
/// How many advisories are under way; each is acknowledged as it comes.
const ADVISORY_WINDOW: i32 = 1_000;
/// Where a broker tells of temporary destinations.
const ADVISORIES: &str = "ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic";

impl State {
    pub(super) fn delete_temporary(&mut self, destination: &Destination) -> Result<Receipt, ProviderError> {
        // ActiveMQ leaves this to its clients.
        let on_the_wire = WireDestination::from(destination);
        if self.subscriptions.values().any(|one| one.is_open() && one.destination == on_the_wire) {
            return Err(ProviderError::InvalidDestination {
                destination: destination.to_string(),
                reason: "it has a consumer; close that first".to_owned(),
            });
        }
        Ok(self.change_temporary(destination, DestinationOperation::Remove))
    }

    pub(super) fn change_temporary(
        &mut self,
        destination: &Destination,
        operation: DestinationOperation,
    ) -> Receipt {
        let info = DestinationInfo {
            response_required: true,
            connection_id: Some(self.peer.connection.clone()),
            destination: Some(WireDestination::from(destination)),
            operation_type: operation,
            ..DestinationInfo::default()
        };
        let confirmation = match operation {
            DestinationOperation::Add => Confirmation::Created(destination.clone()),
            DestinationOperation::Remove => Confirmation::Done,
        };
        self.ask(info, About::Destination(destination.to_string()), Then::Confirm(confirmation))
    }

    pub(super) fn watch_events(&mut self) -> Receipt {
        let info = ConsumerInfo {
            response_required: true,
            consumer_id: self.advisory_consumer(),
            destination: Some(advisories()),
            prefetch_size: ADVISORY_WINDOW,
            // So that those that are there are told of before the answer.
            dispatch_async: false,
            ..ConsumerInfo::default()
        };
        self.ask(info, About::Other, Then::Watching)
    }

    /// The consumer of the advisories, which is no subscription of the client's.
    pub(super) fn advisory_consumer(&self) -> ConsumerId {
        let connection_id = Arc::clone(&self.peer.connection.value);
        ConsumerId { connection_id, session_id: DEFAULT_SESSION, value: 1 }
    }
}

/// The topics on which a broker tells of temporary destinations.
pub(super) fn advisories() -> WireDestination {
    WireDestination::new(corriere_core::DestinationKind::Topic, ADVISORIES)
}

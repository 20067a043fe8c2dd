//! The task that writes to a peer.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::tcp::OwnedWriteHalf;

use super::accepting::Shared;
use super::deliveries::{Deliveries, Outgoing};
use crate::link::{CommandWriter, LinkError, write_out};

/// What the task needs.
pub(super) struct Writing {
    pub(super) shared: Arc<Shared>,
    pub(super) deliveries: Arc<Deliveries>,
    pub(super) is_corriere: bool,
    /// When a word is written that there is still somebody.
    pub(super) keep_alive: Option<Duration>,
}

impl Writing {
    /// Writes what comes into the outbox until that is closed and empty, and then closes our side of the socket.
    ///
    /// # Errors
    /// When the socket fails, or an answer has no room in a frame that the peer accepts.
    pub(super) async fn run(self, mut writer: CommandWriter<OwnedWriteHalf>) -> Result<(), LinkError> {
        let Self { shared, deliveries, is_corriere, keep_alive } = self;
        let put = |outgoing: Outgoing, writer: &mut CommandWriter<OwnedWriteHalf>| {
            if outgoing.is_counted() {
                deliveries.unwritten.remove();
            }
            match outgoing {
                Outgoing::Word(structure) | Outgoing::Answer(structure) => writer.put(&structure)?,
                Outgoing::Advisory(advisory) => writer.put(&shared.advisor.dispatch(&advisory))?,
                Outgoing::Delivery(delivery) => {
                    let written = match delivery.to_structure(is_corriere) {
                        Ok(structure) => writer.put(&structure).map_err(|error| error.to_string()),
                        Err(error) => Err(error.to_string()),
                    };
                    match written {
                        Ok(()) => deliveries.written(&delivery),
                        // It is this message's own fault, and the next one can be written.
                        Err(reason) => deliveries.undeliverable(&delivery.dispatch, reason),
                    }
                }
            }
            Ok(())
        };
        write_out(&deliveries.outbox, &mut writer, keep_alive, put).await?;
        writer.shutdown().await
    }
}

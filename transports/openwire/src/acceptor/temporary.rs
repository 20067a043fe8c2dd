//! Temporary destinations of a peer, and the others, which are there when they are used.

use corriere_core::provider::Command;

use super::confirmations::{Answer, Then};
use super::connection::Connection;
use super::exceptions::Refusal;
use crate::codec::structures::{self as wire, DestinationOperation, JavaException};

impl Connection {
    /// Makes or removes a destination.
    pub(super) fn change_destination(
        &mut self,
        info: &wire::DestinationInfo,
        answer: Answer,
    ) -> Result<(), Refusal> {
        self.provider()?;
        let Some(named) = &info.destination else {
            return Err(Refusal::new(
                JavaException::InvalidDestination,
                "DestinationInfo names no destination",
            ));
        };
        let destination = named.to_core()?;
        if !destination.is_temporary() {
            return match info.operation_type {
                DestinationOperation::Add => {
                    self.done(answer);
                    Ok(())
                }
                DestinationOperation::Remove => Err(Refusal::new(
                    JavaException::Jms,
                    format_args!(
                        "{destination} is not removed: removing queues and topics is not offered yet"
                    ),
                )),
            };
        }
        self.check_owner(named.owner().unwrap_or_default(), &destination.to_string())?;
        let command = match info.operation_type {
            DestinationOperation::Add => Command::CreateTemporary { destination },
            DestinationOperation::Remove => Command::DeleteTemporary { destination },
        };
        self.submit(command, Then::Answer(answer))
    }
}

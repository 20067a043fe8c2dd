//! Durable subscriptions: what a consumer asks for by a name, and the end of one.

use corriere_core::provider::{Capability, Command};

use super::confirmations::{Answer, Then};
use super::connection::Connection;
use super::exceptions::Refusal;
use crate::codec::structures::{self as wire, JavaException};

impl Connection {
    /// That the provider keeps durable subscriptions.
    pub(super) fn check_durable(&self, name: &str) -> Result<(), Refusal> {
        if self.provider()?.capabilities().has(Capability::DurableSubscriptions) {
            return Ok(());
        }
        let reason = format!("durable subscriptions are not offered; the consumer is for `{name}`");
        Err(Refusal::new(JavaException::Jms, reason))
    }

    /// Removes a durable subscription of the connection's client.
    pub(super) fn unsubscribe(
        &mut self,
        info: &wire::RemoveSubscriptionInfo,
        answer: Answer,
    ) -> Result<(), Refusal> {
        let provider = self.provider()?;
        let name = info.subscription_name.clone().unwrap_or_default();
        let refuse = |reason: String| Err(Refusal::new(JavaException::InvalidDestination, reason));
        if !provider.capabilities().has(Capability::DurableSubscriptions) {
            return refuse(format!(
                "there is no subscription `{name}`: durable subscriptions are not offered"
            ));
        }
        let owner = info.client_id.as_deref().unwrap_or_default();
        if !owner.is_empty() && self.client_id.as_deref() != Some(owner) {
            return refuse(format!(
                "subscription `{name}` of client `{owner}` is not removed by a connection of client `{}`; expected one of its own",
                self.client_id()
            ));
        }
        self.submit(Command::Unsubscribe { name }, Then::Answer(answer))
    }
}

/// The name of the durable subscription that a consumer is for. Some clients write none as an empty one.
pub(super) fn name_of(info: &wire::ConsumerInfo) -> Option<&std::sync::Arc<str>> {
    info.subscription_name.as_ref().filter(|name| !name.is_empty())
}

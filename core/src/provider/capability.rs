//! What a provider can do.

use std::fmt;

/// Something that not every provider can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Capability {
    /// Counting deliveries and delaying redelivery at the broker.
    BrokerRedelivery,
    /// Credit granted one by one, as a pull needs it.
    ExplicitCredit,
    /// Acknowledging single messages.
    IndividualAcknowledge,
    /// Acknowledging lazily, in batches.
    DupsOkAcknowledge,
    /// Distributed (XA) transactions.
    DistributedTransactions,
    /// Looking at a queue without consuming.
    Browse,
    /// Temporary queues and topics.
    TemporaryDestinations,
    /// Message selectors.
    Selectors,
    /// Durable subscriptions.
    DurableSubscriptions,
    /// Word of temporary destinations that come and go.
    Events,
    /// Checking user names and passwords.
    Authentication,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BrokerRedelivery => "redelivery counted by the broker",
            Self::ExplicitCredit => "explicit credit",
            Self::IndividualAcknowledge => "individual acknowledgement",
            Self::DupsOkAcknowledge => "lazy (dups-ok) acknowledgement",
            Self::DistributedTransactions => "distributed (XA) transactions",
            Self::Browse => "browsing a queue",
            Self::TemporaryDestinations => "temporary destinations",
            Self::Selectors => "message selectors",
            Self::DurableSubscriptions => "durable subscriptions",
            Self::Events => "events",
            Self::Authentication => "authentication by user name and password",
        })
    }
}

/// The capabilities of a provider, as a connection has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(u32);

impl Capabilities {
    /// Exactly these capabilities.
    #[must_use]
    pub fn of(capabilities: &[Capability]) -> Self {
        Self(capabilities.iter().fold(0, |set, capability| set | 1 << *capability as u8))
    }

    /// Whether `capability` is among them.
    #[must_use]
    pub fn has(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u8) != 0
    }
}

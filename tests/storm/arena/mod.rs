//! Where a storm takes place: a broker that ends again and again, and starts on what it kept.

mod process;
mod within;

use std::sync::Arc;

pub(crate) use process::Process;
pub(crate) use within::Within;

use crate::ledger::Ledger;
use crate::line::Address;
use crate::plan::Transport;
use crate::standing::Standing;

/// How a life of the broker ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    InOrder,
    /// As `kill -9` ends it: all that it had written is there.
    Kill,
    /// What it had not synced may be gone, in whole or in part.
    PowerCut {
        /// Decides what survives.
        seed: u64,
    },
}

#[derive(Debug)]
pub(crate) enum Arena {
    Process(Box<Process>),
    Within(Box<Within>),
}

impl Arena {
    /// How clients reach it.
    pub(crate) fn transports(&self) -> &'static [Transport] {
        match self {
            Self::Process(_) => &[Transport::Tcp],
            Self::Within(_) => &[Transport::Vm, Transport::Tcp],
        }
    }

    /// How its lives end.
    pub(crate) fn endings(&self, seed: u64) -> Vec<Ending> {
        match self {
            Self::Process(_) => vec![Ending::InOrder, Ending::Kill],
            Self::Within(_) => vec![Ending::InOrder, Ending::Kill, Ending::PowerCut { seed }],
        }
    }

    pub(crate) fn vm_url(&self) -> String {
        format!("vm://{}", within::NAME)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> Address {
        match self {
            Self::Process(process) => process.address.clone(),
            Self::Within(within) => within.address.clone(),
        }
    }

    /// What it says of its destinations.
    pub(crate) async fn standing(&self) -> Vec<Standing> {
        match self {
            Self::Process(process) => process.standing().await,
            Self::Within(within) => within.standing().await,
        }
    }

    /// Ends this life and begins the next.
    pub(crate) async fn restart(&self, ending: Ending, ledger: &Arc<Ledger>) {
        match self {
            Self::Process(process) => process.restart(ending, ledger).await,
            Self::Within(within) => within.restart(ending, ledger).await,
        }
    }

    /// Nothing vanished and nothing was made up in this life so far.
    pub(crate) async fn check_conserved(&self, ledger: &Ledger) {
        check_conserved(&self.standing().await, ledger);
    }
}

fn check_conserved(standing: &[Standing], ledger: &Ledger) {
    for one in standing.iter().filter(|one| !one.is_conserved) {
        ledger.violation(format!(
            "the counts of {} are not conserved in life {:?}: {}",
            one.name,
            ledger.life(),
            one.counts
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_are_not_conserved_are_reported() {
        let ledger = Ledger::new(Vec::new(), 0);
        let standing = |is_conserved| Standing {
            name: "orders".to_owned(),
            pending: 0,
            is_conserved,
            counts: "one enqueued".to_owned(),
        };
        check_conserved(&[standing(true)], &ledger);
        assert!(ledger.judge().is_empty());
        check_conserved(&[standing(false)], &ledger);
        let violations = ledger.judge();
        assert_eq!(violations, ["the counts of orders are not conserved in life Some(1): one enqueued"]);
    }
}

//! A broker that confirms messages that are given back only when six of them wait for it, at `gathering://NAME` for the
//! embedded broker `NAME`.

use std::sync::Mutex;

use corriere_core::provider::{
    AckKind, Command, Confirmation, Confirmer, ProviderConnection, ProviderScheme, Receipt,
};
use corriere_tests::wrapped::{Between, wrapped};

const TOGETHER: usize = 6;

inventory::submit! {
    ProviderScheme { scheme: "gathering", open: |name| wrapped(name, Gathering::default) }
}

#[derive(Debug, Default)]
struct Gathering {
    waiting: Mutex<Vec<Confirmer>>,
}

impl Between for Gathering {
    fn submit(&self, broker: &dyn ProviderConnection, command: Command) -> Receipt {
        let is_given_back =
            matches!(&command, Command::Acknowledge(ack) if matches!(ack.kind, AckKind::Redelivered { .. }));
        let receipt = broker.submit(command);
        if !is_given_back {
            return receipt;
        }
        let (confirmer, gathered) = Receipt::pending();
        let mut waiting = self.waiting.lock().unwrap();
        waiting.push(confirmer);
        if waiting.len() == TOGETHER {
            waiting.drain(..).for_each(|confirmer| confirmer.confirm(Ok(Confirmation::Done)));
        }
        gathered
    }
}

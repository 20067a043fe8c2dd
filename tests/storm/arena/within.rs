//! The broker within the test's process, on recorded files, which know what a power cut takes. Clients come over `vm:` and over
//! `tcp:`. Here an end without order is that of its files: nothing that is left of the life before is written any more.

use std::sync::Arc;
use std::time::Duration;

use corriere::broker::files::{RecordedFiles, Survival};
use corriere::broker::journal::{JournalOptions, JournalStore};
use corriere::broker::{Broker, Settings};
use corriere::core::{Clock, RedeliveryPolicy};
use corriere::openwire::acceptor::{Acceptor, AcceptorOptions};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use super::{Ending, check_conserved};
use crate::ledger::Ledger;
use crate::line::Address;
use crate::standing::{self, Standing};

pub(super) const NAME: &str = "storm";

#[derive(Debug)]
pub(crate) struct Within {
    pub(super) address: Address,
    life: Mutex<Life>,
}

#[derive(Debug)]
struct Life {
    files: RecordedFiles,
    broker: Broker,
    acceptor: Acceptor,
}

impl Within {
    pub(crate) async fn start() -> Self {
        let address = Address::default();
        let life = Life::start(RecordedFiles::new(), &address).await;
        Self { address, life: Mutex::new(life) }
    }

    pub(super) async fn standing(&self) -> Vec<Standing> {
        standing::of(&self.life.lock().await.broker)
    }

    pub(super) async fn restart(&self, ending: Ending, ledger: &Ledger) {
        let mut life = self.life.lock().await;
        self.address.set(None);
        let files = match ending {
            Ending::InOrder => life.end(ledger).await,
            Ending::Kill => life.break_off(Survival::Process, ledger).await,
            Ending::PowerCut { seed } => life.break_off(Survival::PowerCut { seed }, ledger).await,
        };
        *life = Life::start(files, &self.address).await;
        ledger.turn();
    }
}

impl Life {
    async fn start(files: RecordedFiles, address: &Address) -> Self {
        let redelivery = RedeliveryPolicy {
            maximum_redeliveries: None,
            initial_delay: Duration::from_millis(5),
            delay: Duration::from_millis(5),
            ..RedeliveryPolicy::default()
        };
        let settings = Settings { memory_limit: 1 << 20, redelivery, ..Settings::default() };
        let mut options = JournalOptions::new("/storm");
        options.max_file_length = 1 << 20;
        options.checkpoint_after = 4 << 20;
        options.cleanup_interval = Duration::from_secs(1);
        // Without it, a power cut may take back an acknowledgement that was confirmed shortly before.
        options.ack_sync = true;
        let store = Arc::new(files.clone());
        let store = spawn_blocking(move || JournalStore::open(store, options)).await.unwrap();
        let store = store.unwrap_or_else(|error| panic!("the store does not open: {error}"));
        let broker = Broker::start(NAME, settings, Arc::new(store), Clock::system()).unwrap();
        let options = AcceptorOptions { broker_name: NAME.into(), ..AcceptorOptions::default() };
        let acceptor = Acceptor::bind("tcp://127.0.0.1:0", Arc::new(broker.clone()), options).await.unwrap();
        address.set(Some(acceptor.local_address()));
        Self { files, broker, acceptor }
    }

    /// In order; with what the next life finds.
    async fn end(&self, ledger: &Ledger) -> RecordedFiles {
        check_conserved(&standing::of(&self.broker), ledger);
        ledger.turn_in_order();
        self.acceptor.stop().await;
        self.stop_broker().await;
        self.files.survive(Survival::OnlySynced)
    }

    /// Files first, so that nothing of this life changes what the next one finds.
    async fn break_off(&self, how: Survival, ledger: &Ledger) -> RecordedFiles {
        ledger.turn();
        let files = self.files.survive(how);
        // While clients still believe in it, it tells them what they wait for has failed.
        self.stop_broker().await;
        self.acceptor.stop().await;
        files
    }

    async fn stop_broker(&self) {
        let broker = self.broker.clone();
        spawn_blocking(move || broker.stop()).await.unwrap();
    }
}

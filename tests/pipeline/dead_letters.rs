//! The dead letters in a data directory, read by a broker of this test's own.

use std::path::Path;
use std::sync::Arc;

use corriere_broker::files::Disk;
use corriere_broker::journal::{JournalOptions, JournalStore};
use corriere_broker::{Broker, Settings};
use corriere_core::{Clock, Destination, Message};

/// All messages on a queue of the broker `local`, whose directory nobody else uses now.
pub(crate) fn on_queue(data: &Path, queue: &str) -> Vec<Arc<Message>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = JournalStore::open(Arc::new(Disk), JournalOptions::new(data.join("local"))).unwrap();
        // Two tests may read at the same time, and a name is one broker's in a process.
        let name =
            format!("reading-{}", data.to_string_lossy().replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        let broker = Broker::start(&name, Settings::default(), Arc::new(store), Clock::system()).unwrap();
        let mut browse = broker.browse(&Destination::queue(queue).unwrap());
        let mut messages = Vec::new();
        while let Some(message) = browse.next().await {
            messages.push(message.unwrap());
        }
        broker.stop();
        messages
    })
}

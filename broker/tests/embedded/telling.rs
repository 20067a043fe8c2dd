//! Events, and their order among deliveries and confirmations.

use std::sync::{Arc, Mutex};

use corriere_core::provider::{
    Command, Confirmation, DeliverySink, Dispatch, Event, ProviderConnection, provider_for,
};
use corriere_core::{ConnectionId, Destination, DestinationKind, SessionId, SubscriptionId};

use crate::support::*;

/// Writes down what comes, in its order.
#[derive(Debug, Default)]
struct Diary(Mutex<Vec<String>>);

impl DeliverySink for Diary {
    fn deliver(&self, batch: Vec<Dispatch>) {
        let mut lines = self.0.lock().unwrap();
        lines.extend(batch.iter().map(|dispatch| {
            let id = dispatch.message.headers().message_id.as_ref().unwrap();
            format!("{} to {}", id.sequence, dispatch.subscription)
        }));
    }

    fn notify(&self, event: Event) {
        let line = match event {
            Event::BrowseEnded { subscription } => format!("end of {subscription}"),
            Event::DestinationChanged { destination, exists } => {
                format!("{} {}", destination.name(), if exists { "comes" } else { "goes" })
            }
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push(line);
    }
}

impl Diary {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A connection of this identity with session 1 and producer 1.
async fn connect_as(broker: &str, identity: &str) -> (Arc<dyn ProviderConnection>, Arc<Diary>) {
    let diary = Arc::new(Diary::default());
    let provider = provider_for("vm", &format!("//{broker}")).unwrap();
    let sink = Arc::clone(&diary) as Arc<dyn DeliverySink>;
    let options = corriere_core::provider::ConnectOptions {
        connection: ConnectionId::foreign(identity),
        ..options(None)
    };
    let connection = provider.connect(options, sink).await.unwrap();
    open_sender(&*connection).await;
    (connection, diary)
}

fn temporary(name: &str) -> Destination {
    Destination::temporary(DestinationKind::Queue, name).unwrap()
}

#[tokio::test]
async fn the_end_of_a_browse_is_told_behind_its_last_message_and_before_the_confirmation() {
    let _broker = start("browse_end");
    let (connection, diary) = connect_as("browse_end", "ID:a").await;
    for sequence in 1..=3 {
        assert_eq!(within(connection.submit(send(message(sequence)))).await, DONE);
    }
    let (subscription, session) = (SubscriptionId(7), SessionId(1));
    let browse = Command::Browse { subscription, session, destination: orders(), selector: None };
    assert_eq!(within(connection.submit(browse)).await, DONE);
    assert!(diary.take().is_empty());
    assert_eq!(within(connection.submit(Command::Grant { subscription, credit: 2 })).await, DONE);
    assert_eq!(diary.take(), ["1 to 7", "2 to 7"]);
    assert_eq!(within(connection.submit(Command::Grant { subscription, credit: 1 })).await, DONE);
    assert_eq!(diary.take(), ["3 to 7", "end of 7"]);
}

#[tokio::test]
async fn a_watcher_hears_of_a_destination_before_it_gets_what_is_to_be_answered_there() {
    let _broker = start("watched");
    let (owner, _) = connect_as("watched", "ID:a").await;
    let (watcher, diary) = connect_as("watched", "ID:b").await;
    let create = |name: &str| Command::CreateTemporary { destination: temporary(name) };
    assert_eq!(within(owner.submit(create("ID:a:1"))).await, Ok(Confirmation::Created(temporary("ID:a:1"))));
    open_reader(&*watcher).await;
    assert_eq!(within(watcher.submit(Command::WatchEvents)).await, DONE);
    assert_eq!(diary.take(), ["ID:a:1 comes"]);
    // Nobody waits in between.
    owner.tell(create("ID:a:2"));
    owner.tell(send(message(1)));
    assert_eq!(
        within(owner.submit(Command::DeleteTemporary { destination: temporary("ID:a:1") })).await,
        DONE
    );
    assert_eq!(diary.take(), ["ID:a:2 comes", "1 to 1", "ID:a:1 goes"]);
    drop(owner);
    assert_eq!(within(watcher.submit(Command::Recover)).await, Ok(Confirmation::Recovered(Vec::new())));
    assert_eq!(diary.take(), ["ID:a:2 goes"], "with its connection");
    assert_eq!(
        within(watcher.submit(create("ID:b:1"))).await,
        Ok(Confirmation::Created(temporary("ID:b:1")))
    );
    assert_eq!(within(watcher.submit(Command::Close)).await, DONE);
    assert_eq!(diary.take(), ["ID:b:1 comes"], "and nothing once it is closed");
}

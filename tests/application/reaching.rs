//! Starts with brokers that are elsewhere, not there, or not willing.

use std::time::Duration;

use corriere::core::{Clock, ConnectionFactory};
use corriere::prelude::*;
use corriere_broker::store::MemoryStore;
use corriere_broker::{Broker, Settings};
use tokio::time::timeout;

use crate::{application, refused};

const HANG: Duration = Duration::from_secs(120);

#[jms_listener(queue = "anywhere")]
async fn on_anything(_text: String) {}

fn broker(name: &str) -> Broker {
    Broker::start(name, Settings::default(), std::sync::Arc::new(MemoryStore), Clock::system()).unwrap()
}

/// Decision 18.
#[tokio::test]
async fn a_broker_of_this_process_that_is_not_there_stops_the_start() {
    let text = "[broker]\nname = \"harbour\"\n[connection_factories.main]\nurl = \"vm://harbor\"";
    let told = timeout(HANG, refused(application(text).listeners([on_anything::DEF]))).await.unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    let expected = "`connection_factories.main.url` (config.toml:4:7): there is no broker in this process `harbor`; \
                    did you mean `harbour`?";
    assert!(told[0].starts_with(expected), "{told:?}");

    let factory = ConnectionFactory::from_url("vm://nobody").unwrap();
    let told = refused(application("").connection_factory("extra", factory).listeners([])).await;
    assert!(told[0].starts_with("`connection_factories.extra`"), "{told:?}");
}

#[tokio::test]
async fn a_start_does_not_wait_for_a_broker_that_is_not_its_own() {
    let elsewhere = broker("elsewhere");
    let factory = ConnectionFactory::from_url("vm://elsewhere?jms.clientID=taken").unwrap();
    let holder = factory.create_connection().await.unwrap();
    let text =
        "[broker]\nname = \"own\"\n[connection_factories.other]\nurl = \"vm://elsewhere?jms.clientID=taken\"";
    let app = timeout(HANG, application(text).listeners([on_anything::DEF]).start()).await.unwrap().unwrap();
    assert_eq!(app.containers()[0].status().subscribed, 0, "the other broker refuses the client id");

    // It goes on trying, as it would with a broker that is down.
    holder.close().await.unwrap();
    timeout(HANG, app.containers()[0].ready()).await.unwrap();
    timeout(HANG, app.stop()).await.unwrap();
    elsewhere.stop();
}

#[jms_listener(id = "one", queue = "one")]
#[jms_listener(id = "two", queue = "two")]
async fn on_either(_text: String) {}

#[tokio::test]
async fn a_listener_that_the_own_broker_refuses_stops_the_start() {
    let text =
        "[broker]\nname = \"strict\"\n[connection_factories.main]\nurl = \"vm://strict/?jms.clientID=same\"";
    let told = timeout(HANG, refused(application(text).listeners(on_either::DEFS))).await.unwrap();
    assert!(told[0].contains("cannot receive from the application's broker"), "{told:?}");
    assert!(told[0].contains("`same`"), "{told:?}");
    // Nothing is left of it.
    broker("strict").stop();
}

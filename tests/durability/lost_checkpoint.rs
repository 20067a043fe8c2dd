//! A data directory whose checkpoint is gone (C-45 e).

use std::path::PathBuf;
use std::time::Duration;

use corriere_broker::journal::OpenError;
use corriere_broker::journal::inspect::repair;
use corriere_core::AcknowledgeMode::{Auto, Client};

use crate::support::{End, Home, next, queue, send_text, text, within};

/// C-45 (e): `m1` is in the first file and not acknowledged, what was acknowledged of each file is said in the next one.
#[tokio::test]
async fn the_start_is_refused_by_name_and_a_repair_brings_back_what_lives() {
    let mut home = Home::recorded();
    home.options.max_file_length = 16 * 1024;
    home.options.cleanup_interval = Duration::from_millis(20);
    let q = queue("q");
    let broker = home.start();
    let padding = "x".repeat(2_000);
    let sender = broker.session(Auto).await;
    send_text(&sender, &q, "m1").await;
    let session = broker.session(Client).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    let unacknowledged = next(&consumer).await.into_single();
    for number in 2..=40 {
        send_text(&sender, &q, &format!("m{number}.{padding}")).await;
        within(next(&consumer).await.into_single().acknowledge()).await.unwrap();
    }
    drop(unacknowledged);
    home.end(broker, End::Stop);

    // With its checkpoint exactly one comes back.
    let broker = home.start();
    assert_eq!(broker.counts(&q).recovered, 1);
    broker.stop();

    let state = home.options.directory.join("kr-store").join("state");
    home.files().remove(&state).unwrap();
    let before = home.everything();
    let error = home.open().unwrap_err();
    assert!(matches!(error, OpenError::Missing { .. }), "{error:?}");
    let words = error.to_string();
    for word in [state.to_str().unwrap(), "checkpoint", "corriere-store repair"] {
        assert!(words.contains(word), "`{word}` should be in: {words}");
    }
    assert!(home.everything() == before, "a refused start changed the journal");

    // What was consumed may come back, what was not must.
    let into = PathBuf::from("/data/repaired");
    repair(&home.files(), &home.options.directory, &into).unwrap();
    home.options.directory = into;
    let broker = home.start();
    let session = broker.session(Client).await;
    let consumer = session.create_consumer(&q).await.unwrap();
    assert_eq!(text(next(&consumer).await.message()), "m1");
    assert!(broker.counts(&q).recovered <= 40);
    broker.stop();
}

//! What is published while nobody is there who could miss it later.

use std::time::Duration;

use corriere_core::AcknowledgeMode::Auto;
use corriere_core::Destination;

use crate::support::{End, Home, firsts, see, send_text};

#[tokio::test]
async fn a_topic_brings_nothing_back_and_fills_no_journal() {
    let mut home = Home::recorded();
    home.options.max_file_length = 16 * 1024;
    home.options.cleanup_interval = Duration::from_millis(20);
    let topic = Destination::topic("t").unwrap();
    let broker = home.start();
    let subscriber = broker.consumer(Auto, &topic).await;
    broker.send(&topic, 1..=5).await;
    assert_eq!(see(&subscriber, 5).await, firsts(1..=5));
    let session = broker.session(Auto).await;
    for _ in 0..200 {
        send_text(&session, &topic, &"x".repeat(1_000)).await;
    }
    assert!(home.segments().len() < 4, "{:?}", home.segments());
    let broker = home.restart(broker, End::Kill);
    let subscriber = broker.consumer(Auto, &topic).await;
    assert_eq!(broker.counts(&topic).pending, 0);
    broker.send(&topic, 6..=6).await;
    assert_eq!(see(&subscriber, 1).await, firsts(6..=6));
    broker.stop();
}

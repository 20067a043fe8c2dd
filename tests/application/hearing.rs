//! What a broker elsewhere hears of the message that a listener has, while that keeps its thread.

use std::sync::{Mutex, mpsc};

use corriere::core::Destination;
use corriere::prelude::*;
use corriere_tests::apart::Apart;
use corriere_tests::receiving::{eventually, within};

use crate::application;

#[jms_listener(queue = "heavy", ack = "client")]
async fn on_heavy(_text: String, gate: Bean<Mutex<mpsc::Receiver<()>>>) {
    let _ = gate.lock().unwrap().recv();
}

/// A listener of this kind that kills its process would otherwise be given the same message for ever.
#[tokio::test]
async fn a_listener_that_never_lets_go_of_its_thread_has_a_message_that_counts() {
    let config = "[broker]\nname = \"hearing\"\nlisten = [\"tcp://127.0.0.1:0\"]\n[templates.any]";
    let elsewhere = application(config).listeners([]).start().await.unwrap();
    let url = elsewhere.listen_urls().remove(0);
    let config =
        format!("[connection_factories.main]\nurl = \"{url}\"\n[listener_containers.default]\nprefetch = 1");
    let (free, gate) = mpsc::channel::<()>();
    let app = application(&config).named_bean("gate", Mutex::new(gate)).listeners([on_heavy::DEF]);
    let client = Apart::start();
    let app = within(client.run(async { app.start().await.unwrap() })).await;
    let template: JmsTemplate = elsewhere.bean("any").unwrap();
    for text in ["first", "second"] {
        template.convert_and_send_to("heavy", text).await.unwrap();
    }
    let heavy = Destination::queue("heavy").unwrap();
    // The second one comes when the first is known to have been handed over, and no sooner.
    eventually("the broker to know of the hand-over", || {
        let counts = elsewhere.broker().unwrap().counts(&heavy).unwrap_or_default();
        if counts.in_flight == 2 { Ok(()) } else { Err(format!("{counts:?}")) }
    })
    .await;
    drop(free);
    assert!(within(client.run(app.stop())).await.is_clean());
    elsewhere.stop().await;
}

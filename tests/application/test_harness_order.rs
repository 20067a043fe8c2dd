//! The harness for tests: what is set before and after, and what is counted when.

use corriere::prelude::*;

#[jms_listener(queue = "fails")]
async fn on_failing(_text: String) -> Result<(), ListenerError> {
    Err(ListenerError::redeliver("no"))
}

#[corriere::test]
async fn a_key_that_was_set_before_the_configuration_still_holds(app: TestApp) {
    let app = app
        .set("broker.redelivery.maximum_redeliveries", 0)
        .config("[broker.redelivery]\nmaximum_redeliveries = 3\n[templates.any]")
        .listeners([on_failing::DEF])
        .start()
        .await;
    app.send("fails", "x").await;
    app.settled(on_failing::DEF).await.failed().times(1).dead_lettered().times(1);
    let _template: JmsTemplate = app.bean("any");
}

#[jms_listener(queue = "many")]
async fn on_many(_text: String) {}

#[corriere::test]
async fn what_has_settled_has_been_counted(app: TestApp) {
    let app = app.listeners([on_many::DEF]).start().await;
    for number in 1..=500 {
        app.send("many", "x").await;
        app.settled(on_many::DEF).await.acked().times(number);
        assert_eq!(app.application().container("on_many").unwrap().status().handled, number);
    }
}

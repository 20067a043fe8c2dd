//! What a test's application finds after a crash, a power cut and a restart: what a program would find.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use corriere::core::{Destination, SendOptions};
use corriere::prelude::*;
use corriere::testing::RunningTestApp;
use tokio::sync::{Notify, Semaphore};

/// After this a test is taken to hang.
const HANG: Duration = Duration::from_secs(120);

/// What a listener has seen over all lives, and where it stands still until it may go on.
#[derive(Clone, Debug)]
struct Watch {
    seen: Arc<Mutex<Vec<(String, u32)>>>,
    begun: Arc<Notify>,
    may_go_on: Arc<Semaphore>,
}

impl Watch {
    fn closed() -> Self {
        let (seen, begun) = (Arc::default(), Arc::default());
        Self { seen, begun, may_go_on: Arc::new(Semaphore::new(0)) }
    }

    fn open() -> Self {
        let watch = Self::closed();
        watch.may_go_on.add_permits(Semaphore::MAX_PERMITS / 2);
        watch
    }

    async fn see(&self, text: &str, delivery: &Delivery) {
        self.seen.lock().unwrap().push((text.to_owned(), delivery.count()));
        self.begun.notify_one();
        self.may_go_on.acquire().await.unwrap().forget();
    }

    async fn has_begun(&self) {
        tokio::time::timeout(HANG, self.begun.notified()).await.expect("no run has begun");
    }

    fn seen(&self) -> Vec<(String, u32)> {
        self.seen.lock().unwrap().clone()
    }
}

fn pairs(expected: &[(&str, u32)]) -> Vec<(String, u32)> {
    expected.iter().map(|(text, count)| ((*text).to_owned(), *count)).collect()
}

#[jms_listener(queue = "work")]
async fn on_work(text: String, delivery: Delivery, watch: Bean<Watch>) {
    watch.see(&text, &delivery).await;
}

#[jms_listener(queue = "work", ack = "client")]
async fn on_work_acknowledging(text: String, delivery: Delivery, watch: Bean<Watch>) {
    delivery.acknowledge().await.unwrap();
    watch.see(&text, &delivery).await;
}

#[jms_listener(queue = "work", ack = "transacted", send_to = "results", concurrency = "1-4")]
async fn on_work_transacted(
    text: String,
    delivery: Delivery,
    session: Session,
    watch: Bean<Watch>,
) -> Result<String, ListenerError> {
    let copies = Destination::queue("copies").unwrap();
    session.send(&copies, &Message::text(text.clone()), &SendOptions::default()).await?;
    watch.see(&text, &delivery).await;
    Ok(text)
}

#[jms_listener(queue = "work")]
async fn on_work_failing(text: String) -> Result<(), ListenerError> {
    Err(std::io::Error::other(format!("no {text}"))).or_retry_after(secs(3_600))
}

#[jms_listener(queue = "work")]
#[expect(clippy::needless_pass_by_value, reason = "a listener owns its arguments")]
fn on_work_blocking(text: String, delivery: Delivery, watch: Bean<Watch>) {
    watch.seen.lock().unwrap().push((text, delivery.count()));
    watch.begun.notify_one();
    // Nobody can end this.
    std::thread::sleep(Duration::from_mins(10));
}

fn pause(app: &RunningTestApp, id: &str) {
    app.application().container(id).unwrap().pause().unwrap();
}

#[corriere::test]
async fn a_message_comes_although_the_process_died_between_its_send_and_its_handler(app: TestApp) {
    let watch = Watch::open();
    let app = app.bean(watch.clone()).listeners([on_work::DEF]).start().await;
    pause(&app, "on_work");
    app.send("work", "one").await;
    assert_eq!(watch.seen(), []);
    let app = app.crash().await;
    app.settled(on_work::DEF).await.acked().times(1).failed().times(0);
    // Nobody had it in hand before.
    assert_eq!(watch.seen(), pairs(&[("one", 1)]));
}

#[corriere::test]
async fn a_message_in_the_hands_of_its_handler_comes_again_counted(app: TestApp) {
    let watch = Watch::closed();
    let mut app = app.bean(watch.clone()).listeners([on_work::DEF]).start().await;
    app.send("work", "one").await;
    watch.has_begun().await;
    for _ in 0..3 {
        app = app.crash().await;
        watch.has_begun().await;
    }
    watch.may_go_on.add_permits(1);
    app.settled(on_work::DEF).await.acked().times(1);
    assert_eq!(watch.seen(), pairs(&[("one", 1), ("one", 2), ("one", 3), ("one", 4)]));
    app.is_empty("work");
}

#[corriere::test]
async fn a_message_that_kills_its_process_each_time_ends_in_the_dead_letters(app: TestApp) {
    let watch = Watch::closed();
    let app = app.set("broker.redelivery.maximum_redeliveries", 1).bean(watch.clone());
    let mut app = app.listeners([on_work::DEF]).start().await;
    app.send("work", "deadly").await;
    for _ in 0..2 {
        watch.has_begun().await;
        app = app.crash().await;
    }
    app.settled(on_work::DEF).await.acked().times(0);
    assert_eq!(app.dead_letters("work").await.len(), 1);
    assert_eq!(watch.seen(), pairs(&[("deadly", 1), ("deadly", 2)]));
}

#[corriere::test]
async fn what_only_waited_behind_it_is_not_counted(app: TestApp) {
    let watch = Watch::closed();
    let app = app.bean(watch.clone()).listeners([on_work::DEF]).start().await;
    for text in ["one", "two", "three"] {
        app.send("work", text).await;
    }
    watch.has_begun().await;
    let app = app.crash().await;
    watch.may_go_on.add_permits(3);
    app.settled(on_work::DEF).await.acked().times(3);
    assert_eq!(watch.seen(), pairs(&[("one", 1), ("one", 2), ("two", 1), ("three", 1)]));
}

#[corriere::test]
async fn an_acknowledgement_that_has_returned_outlives_the_process(app: TestApp) {
    let watch = Watch::closed();
    let app = app.bean(watch.clone()).listeners([on_work_acknowledging::DEF]).start().await;
    app.send("work", "one").await;
    watch.has_begun().await;
    let app = app.crash().await;
    app.settled(on_work_acknowledging::DEF).await.acked().times(0).failed().times(0);
    app.is_empty("work");
    assert_eq!(watch.seen(), pairs(&[("one", 1)]));
}

#[corriere::test]
async fn what_a_listener_has_done_stays_done(app: TestApp) {
    let watch = Watch::open();
    let mut app = app.bean(watch.clone()).listeners([on_work::DEF]).start().await;
    for number in 0..20 {
        app.send("work", &number.to_string()).await;
        app.settled(on_work::DEF).await.acked().times(1);
        app = app.crash().await;
    }
    app.settled(on_work::DEF).await.acked().times(0);
    assert_eq!(watch.seen(), (0..20).map(|number: u32| (number.to_string(), 1)).collect::<Vec<_>>());
}

#[corriere::test]
async fn dead_letters_and_why_they_are_dead_survive(app: TestApp) {
    let app = app.set("broker.redelivery.maximum_redeliveries", 0);
    let app = app.listeners([on_work_failing::DEF]).start().await;
    app.send("work", "luck").await;
    app.settled(on_work_failing::DEF).await.dead_lettered().times(1);
    let app = app.crash().await;
    let letters = app.restart().await.dead_letters("work").await;
    assert_eq!(letters.len(), 1);
    let property = |name: &str| letters[0].property::<String>(name).unwrap().unwrap_or_default();
    assert!(property("dlqDeliveryFailureCause").contains("no luck"), "{letters:?}");
    assert_eq!(property("dlqOriginalDestination"), "queue://work");
    assert_eq!(property("dlqListener"), "on_work_failing");
}

#[corriere::test]
async fn the_delay_of_a_redelivery_survives(app: TestApp) {
    let app = app.listeners([on_work_failing::DEF]).start().await;
    app.send("work", "one").await;
    app.settled(on_work_failing::DEF).await.failed().times(1).delayed().times(1);
    let app = app.crash().await;
    app.settled(on_work_failing::DEF).await.failed().times(0).delayed().times(1);
    app.advance(Duration::from_secs(3_599));
    let app = app.restart().await;
    app.settled(on_work_failing::DEF).await.failed().times(0).delayed().times(1);
    app.advance(Duration::from_secs(1));
    app.settled(on_work_failing::DEF).await.failed().times(1).delayed().times(1);
}

#[corriere::test]
async fn what_a_transacted_handler_sent_is_gone_with_its_process(app: TestApp) {
    let watch = Watch::closed();
    let app = app.bean(watch.clone()).listeners([on_work_transacted::DEF]).start().await;
    app.send("work", "one").await;
    watch.has_begun().await;
    let app = app.crash().await;
    watch.has_begun().await;
    app.is_empty("copies").is_empty("results");
    watch.may_go_on.add_permits(1);
    app.settled(on_work_transacted::DEF).await.acked().times(1);
    let app = app.crash().await;
    assert_eq!(app.take_one::<String>("results").await, "one");
    assert_eq!(app.take_message("copies").await.as_text().unwrap(), Some("one"));
    app.is_empty("copies").is_empty("results").is_empty("work");
    assert_eq!(watch.seen(), pairs(&[("one", 1), ("one", 2)]));
}

#[corriere::test]
async fn a_transaction_is_whole_or_not_at_all_wherever_the_power_is_cut(app: TestApp) {
    const EACH: usize = 6;
    let mut app = app.bean(Watch::open()).listeners([on_work_transacted::DEF]).start().await;
    let mut sent = Vec::new();
    for seed in 0..12 {
        for number in 0..EACH {
            let text = format!("{seed}/{number}");
            app.send("work", &text).await;
            sent.push(text);
        }
        // Some of them are done by now, some under way, and some not begun.
        app = app.power_cut(seed).await;
    }
    app.settled(on_work_transacted::DEF).await;
    let (mut results, mut copies) = (Vec::new(), Vec::new());
    for _ in 0..sent.len() {
        results.push(app.take_one::<String>("results").await);
        copies.push(app.take_message("copies").await.as_text().unwrap().unwrap().to_owned());
    }
    app.is_empty("copies").is_empty("results").is_empty("work");
    for mut found in [results, copies] {
        found.sort();
        sent.sort();
        assert_eq!(found, sent);
    }
}

#[corriere::test]
async fn no_confirmed_send_is_lost_to_a_power_cut_nor_out_of_order(app: TestApp) {
    let mut app = app.start().await;
    let mut sent = Vec::new();
    for seed in 0..25 {
        for number in 0..4 {
            let text = format!("{seed}/{number}");
            app.send("kept", &text).await;
            sent.push(text);
        }
        app = app.power_cut(seed).await;
    }
    for text in &sent {
        assert_eq!(app.take_one::<String>("kept").await, *text);
    }
    app.is_empty("kept");
}

#[corriere::test]
async fn the_clock_and_the_tests_own_beans_go_on(app: TestApp) {
    let watch = Watch::open();
    let app = app.named_bean("watch", watch.clone()).listeners([on_work::DEF]).start().await;
    app.advance(Duration::from_secs(5));
    let before = app.clock().now();
    let app = app.crash().await;
    assert_eq!(app.clock().now(), before);
    assert!(Arc::ptr_eq(&app.bean::<Watch>("watch").seen, &watch.seen));
}

#[corriere::test]
async fn what_is_left_of_the_life_before_reaches_nothing(app: TestApp) {
    let app = app.start().await;
    let (template, broker) = (app.template().clone(), app.broker().clone());
    let app = app.crash().await;
    let refused = tokio::time::timeout(HANG, template.convert_and_send_to("kept", "late")).await;
    refused.expect("the send of a dead process hangs").unwrap_err();
    assert_ne!(broker.name(), app.broker().name());
    app.is_empty("kept");
}

#[corriere::test]
async fn a_blocking_handler_that_hangs_does_not_keep_a_crash(app: TestApp) {
    let watch = Watch::open();
    let app = app.bean(watch.clone()).listeners([on_work_blocking::DEF]).start().await;
    app.send("work", "one").await;
    watch.has_begun().await;
    let app = app.crash().await;
    watch.has_begun().await;
    assert_eq!(watch.seen(), pairs(&[("one", 1), ("one", 2)]));
    drop(app);
}

#[corriere::test]
async fn a_restart_waits_for_the_run_that_is_under_way(app: TestApp) {
    let watch = Watch::closed();
    let app = app.bean(watch.clone()).listeners([on_work::DEF]).start().await;
    app.send("work", "one").await;
    watch.has_begun().await;
    watch.may_go_on.add_permits(1);
    let app = app.restart().await;
    app.settled(on_work::DEF).await.acked().times(0);
    assert_eq!(watch.seen(), pairs(&[("one", 1)]));
}

#[corriere::test]
async fn what_was_not_persistent_is_gone(app: TestApp) {
    let text = "[templates.fleeting]\ndelivery_mode = \"non_persistent\"";
    let app = app.config(text).start().await;
    let fleeting: JmsTemplate = app.bean("fleeting");
    fleeting.convert_and_send_to("work", "fleeting").await.unwrap();
    app.send("work", "kept").await;
    let app = app.restart().await;
    assert_eq!(app.take_one::<String>("work").await, "kept");
    app.is_empty("work");
}

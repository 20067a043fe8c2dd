//! Times to live at the edges: zero, longer than the calendar, and given in two places (open-liberty#9842).

use std::time::Duration;

use corriere_core::SendOptions;

use crate::support::{Bench, until};

#[tokio::test]
async fn zero_never_expires() {
    let bench = Bench::start();
    let template = bench.template();
    template.sending().time_to_live(Duration::ZERO).convert_and_send("kept").await.unwrap();
    bench.clock.advance(Duration::from_hours(100_000));
    assert_eq!(template.receive().await.unwrap().unwrap().headers().expiration, None);
}

#[tokio::test]
async fn a_time_beyond_the_calendar_is_never_in_the_past() {
    let bench = Bench::start();
    let template = bench.template();
    let far = [Duration::MAX, Duration::from_millis(u64::MAX), Duration::from_millis(i64::MAX as u64)];
    for time_to_live in far {
        template.sending().time_to_live(time_to_live).convert_and_send("kept").await.unwrap();
        bench.clock.advance(Duration::from_hours(1));
        let expiration = template.receive().await.unwrap().unwrap().headers().expiration;
        assert!(expiration.is_none_or(|expiration| expiration > bench.clock.now()), "{expiration:?}");
    }
}

#[tokio::test]
async fn what_the_call_says_beats_what_the_template_says() {
    let bench = Bench::start();
    let short = SendOptions { time_to_live: Some(Duration::from_millis(500)), ..SendOptions::default() };
    let template = bench.builder().send_options(short.clone()).build().unwrap();
    template.convert_and_send("by the template").await.unwrap();
    template.sending().time_to_live(Duration::ZERO).convert_and_send("by the call").await.unwrap();
    bench.clock.advance(Duration::from_secs(2));
    assert_eq!(template.receive_and_convert::<String>().await.unwrap().as_deref(), Some("by the call"));
    assert!(template.receive().await.unwrap().is_none());

    let lasting = bench.template();
    lasting.sending().options(&short).convert_and_send("by the call").await.unwrap();
    bench.clock.advance(Duration::from_secs(2));
    assert!(lasting.receive().await.unwrap().is_none());
    until("both are among the dead letters", || bench.counts("DLQ.orders").pending == 2).await;
}

//! A store that has no room for more (C-13, C-46).

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use corriere_broker::all;
use corriere_core::AcknowledgeMode::{Auto, Client, Transacted};
use corriere_core::provider::{Cause, CauseKind, ProviderError};
use corriere_core::{ConnectionFactory, Destination, Error, Message, Release, SendOptions, Session};

use crate::support::{End, Home, Running, next, queue, send_text, text, within};

/// As C-46 was reported.
fn small() -> Home {
    let mut home = Home::recorded();
    home.options.max_file_length = 16 * 1024;
    home.options.store_limit = Some(34_000);
    home.options.cleanup_interval = Duration::from_millis(20);
    home
}

fn eight_kilobytes(name: &str) -> Message {
    Message::text(format!("{name}.{}", "x".repeat(8_000)))
}

/// Sends, and passes the time while the send waits.
async fn send(home: &Home, session: &Session, to: &Destination, name: &str) -> Result<(), Error> {
    let options = SendOptions { deadline: Some(Duration::from_secs(2)), ..SendOptions::default() };
    let message = eight_kilobytes(name);
    let send = session.send(to, &message, &options);
    within(home.passing_time(send)).await.map(drop)
}

/// Sends as often as it takes.
async fn send_at_last(session: &Session, to: &Destination, name: &str) {
    while let Err(error) = session.send(to, &eight_kilobytes(name), &SendOptions::default()).await {
        assert!(is_full(&error), "{error:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Provider(error @ ProviderError::StoreFull { .. }) if error.lacks_room())
}

/// Sends until there is no room, and says how many were confirmed.
async fn fill(home: &Home, broker: &Running, to: &Destination) -> usize {
    let session = broker.session(Auto).await;
    for number in 1..=1_000 {
        if let Err(error) = send(home, &session, to, &format!("m{number}")).await {
            assert!(is_full(&error), "{error:?}");
            return number - 1;
        }
    }
    panic!("the store has no limit")
}

async fn drain(broker: &Running, from: &Destination) -> Vec<String> {
    let seen = broker.drain(from).await;
    seen.into_iter().map(|seen| seen.text.split('.').next().unwrap().to_owned()).collect()
}

fn names(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("m{number}")).collect()
}

/// C-46.
#[tokio::test]
async fn a_transacted_sender_is_told_and_can_close_and_leaves_nothing() {
    let mut home = small();
    let q = queue("q");
    let broker = home.start();
    let session = broker.session(Transacted).await;
    send(&home, &session, &q, "m1").await.unwrap();
    within(session.commit()).await.unwrap();
    let error = loop {
        if let Err(error) = send(&home, &session, &q, "never").await {
            break error;
        }
    };
    assert!(is_full(&error), "{error:?}");
    within(session.connection().close()).await.unwrap();
    assert_eq!(drain(&broker, &q).await, ["m1"], "draining works while the store is full");
    let session = broker.session(Transacted).await;
    for name in ["m2", "m3"] {
        // By itself, once there is room.
        let message = eight_kilobytes(name);
        within(session.send(&q, &message, &SendOptions::default())).await.unwrap();
        within(session.commit()).await.unwrap();
        assert_eq!(drain(&broker, &q).await, [name]);
    }
    let broker = home.restart(broker, End::Stop);
    assert_eq!(drain(&broker, &q).await, [""; 0]);
    broker.stop();
}

/// C-46.
#[tokio::test]
async fn a_send_that_waits_goes_on_by_itself_when_there_is_room() {
    let home = small();
    let q = queue("q");
    let broker = home.start();
    let sent = fill(&home, &broker, &q).await;
    assert!(sent > 0);
    let session = broker.session(Auto).await;
    let waiting = tokio::spawn({
        let (session, q) = (session.clone(), q.clone());
        async move { session.send(&q, &eight_kilobytes("last"), &SendOptions::default()).await }
    });
    assert_eq!(drain(&broker, &q).await[..sent], names(sent));
    within(waiting).await.unwrap().unwrap();
    broker.until(&q, |counts| counts.enqueued == sent as u64 + 1).await;
    broker.stop();
}

/// C-46.
#[tokio::test]
async fn sends_that_are_being_written_as_it_becomes_full_wait_and_come_in_their_order() {
    let mut home = small();
    home.options.store_limit = Some(100_000);
    let q = queue("q");
    let broker = home.start();
    let session = broker.session(Auto).await;
    let send = |name: &String| {
        let (session, q) = (session.clone(), q.clone());
        let message = Message::text(format!("{name}.{}", "x".repeat(3_000)));
        Box::pin(async move { session.send(&q, &message, &SendOptions::default()).await })
    };
    let mut sends = Vec::new();
    for name in names(60) {
        let mut send = send(&name);
        // What it is to send is submitted by the first look at it; what there is room for may be written by then.
        let answer = poll_fn(|context| Poll::Ready(send.as_mut().poll(context))).await;
        sends.push((send, answer));
    }
    assert!(sends.last().unwrap().1.is_pending(), "there is no room for all of them");
    let consumer = broker.consumer(Client, &q).await;
    for name in names(60) {
        let delivery = next(&consumer).await;
        assert!(text(&delivery).starts_with(&format!("{name}.")), "{} where {name} is next", text(&delivery));
        within(delivery.acknowledge()).await.unwrap();
    }
    for (send, answer) in sends {
        let answer = match answer {
            Poll::Ready(answer) => answer,
            Poll::Pending => within(send).await,
        };
        answer.unwrap();
    }
    broker.stop();
}

/// C-46.
#[tokio::test]
async fn filled_and_drained_again_and_again_it_takes_as_much_as_before() {
    let mut home = small();
    let q = queue("q");
    let mut broker = home.start();
    let sent = fill(&home, &broker, &q).await;
    for round in 0..6 {
        if round % 2 == 1 {
            broker = home.restart(broker, if round == 1 { End::Stop } else { End::Kill });
        }
        assert_eq!(drain(&broker, &q).await, names(sent), "in round {round}");
        // All of it fits again, though perhaps only after a moment.
        let session = broker.session(Auto).await;
        for name in names(sent) {
            within(send_at_last(&session, &q, &name)).await;
        }
    }
    broker.stop();
}

/// C-46: the real thing.
#[tokio::test]
async fn a_full_disk_refuses_sends_by_name_and_nothing_else() {
    let mut home = small();
    home.options.store_limit = None;
    home.memory().limit(Some(1 << 20));
    let q = queue("q");
    let broker = home.start();
    let sent = fill(&home, &broker, &q).await;
    assert!(sent >= 10, "{sent}");
    let broker = home.restart(broker, End::Kill);
    // One after the other, so that each acknowledgement finds a disk that is as full as can be.
    let session = broker.session(Client).await;
    let consumer = session.create_consumer_with_prefetch(&q, 1).await.unwrap();
    for name in &names(sent)[..3] {
        let delivery = next(&consumer).await;
        assert!(text(&delivery).starts_with(&format!("{name}.")));
        within(delivery.acknowledge()).await.unwrap();
    }
    within(session.close()).await.unwrap();
    let broker = home.restart(broker, End::Kill);
    assert_eq!(drain(&broker, &q).await, names(sent)[3..]);
    let session = broker.session(Auto).await;
    within(session.send(&q, &eight_kilobytes("again"), &SendOptions::default())).await.unwrap();
    assert_eq!(drain(&broker, &q).await, ["again"]);
    broker.stop();
}

/// C-13.
#[tokio::test]
async fn one_send_that_found_no_room_makes_the_commit_a_rollback() {
    let home = small();
    let (from, to) = (queue("from"), queue("to"));
    let broker = home.start();
    send_text(&broker.session(Auto).await, &from, "taken").await;
    let session = broker.session(Transacted).await;
    let consumer = session.create_consumer(&from).await.unwrap();
    assert_eq!(text(next(&consumer).await.message()), "taken");
    let options = SendOptions { deadline: Some(Duration::from_secs(2)), ..SendOptions::default() };
    let sends: Vec<_> = (0..10)
        .map(|_| {
            let (session, to, options) = (session.clone(), to.clone(), options.clone());
            tokio::spawn(async move { session.send(&to, &eight_kilobytes("never"), &options).await })
        })
        .collect();
    for send in sends {
        if let Err(error) = within(home.passing_time(send)).await.unwrap() {
            assert!(is_full(&error), "{error:?}");
        }
    }
    let error = within(session.commit()).await.unwrap_err();
    assert!(matches!(error, Error::TransactionRolledBack { .. }), "{error:?}");
    assert_eq!(broker.counts(&to).enqueued, 0);
    assert_eq!(text(next(&consumer).await.message()), "taken", "it is still there");
    within(session.send(&to, &Message::text("m1.small"), &SendOptions::default())).await.unwrap();
    within(session.commit()).await.unwrap();
    assert_eq!((drain(&broker, &from).await, drain(&broker, &to).await), (vec![], names(1)));
    broker.stop();
}

#[tokio::test]
async fn what_an_operator_has_no_room_for_is_counted_and_a_purge_makes_room() {
    let home = small();
    let (q, away) = (queue("q"), queue("away"));
    let broker = home.start();
    let sent = fill(&home, &broker, &q).await as u64;
    let operated = broker.broker.queue("q").unwrap();
    let mut copies = 0;
    for round in 1.. {
        let copied = within(operated.copy_to(&away, all)).await.unwrap();
        assert_eq!((copied.matched, copied.done + copied.no_room), (sent, sent), "{copied:?}");
        copies += copied.done;
        if copied.no_room > 0 {
            break;
        }
        assert!(round < 100, "the store has no limit");
    }
    assert_eq!((broker.counts(&q).pending, broker.counts(&away).pending), (sent, copies));
    assert_eq!(within(operated.purge(all)).await.unwrap().done, sent);
    if copies > 0 {
        assert_eq!(within(broker.broker.queue("away").unwrap().purge(all)).await.unwrap().done, copies);
    }
    send_at_last(&broker.session(Auto).await, &q, "later").await;
    assert_eq!(drain(&broker, &q).await, ["later"]);
    broker.stop();
}

#[tokio::test]
async fn copies_stop_at_the_limit_of_the_store_as_sends_do_and_sends_go_on_when_there_is_room() {
    const LIMIT: usize = 100_000;
    let mut home = small();
    home.options.store_limit = Some(LIMIT as u64);
    let (q, away) = (queue("q"), queue("away"));
    let broker = home.start();
    let session = broker.session(Auto).await;
    for name in names(45) {
        let message = Message::text(format!("{name}.{}", "x".repeat(1_000)));
        within(session.send(&q, &message, &SendOptions::default())).await.unwrap();
    }
    let operated = broker.broker.queue("q").unwrap();
    let mut copies = 0;
    for _ in 0..20 {
        // All of one call is with the store before the first refusal is known.
        let copied = within(operated.copy_to(&away, all)).await.unwrap();
        assert_eq!((copied.matched, copied.done + copied.no_room), (45, 45), "{copied:?}");
        copies += copied.done;
        let bytes: usize = home.segments().iter().map(|segment| home.contents(segment).len()).sum();
        assert!(bytes <= LIMIT, "with {copies} copies it has {bytes} bytes");
    }
    assert!(copies > 0);
    assert_eq!((broker.counts(&q).pending, broker.counts(&away).pending), (45, copies));
    let error = send(&home, &session, &q, "never").await.unwrap_err();
    assert!(is_full(&error), "{error:?}");
    let broker = home.restart(broker, End::Kill);
    assert_eq!((broker.counts(&q).pending, broker.counts(&away).pending), (45, copies));
    assert_eq!(within(broker.broker.queue("q").unwrap().purge(all)).await.unwrap().done, 45);
    send_at_last(&broker.session(Auto).await, &q, "later").await;
    assert_eq!(drain(&broker, &q).await, ["later"]);
    assert_eq!(within(broker.broker.queue("away").unwrap().purge(all)).await.unwrap().done, copies);
    broker.stop();
}

#[tokio::test]
async fn a_dead_letter_goes_back_to_a_durable_subscription_out_of_a_full_store_and_is_there_after_any_end() {
    for end in [End::Stop, End::Kill, End::PowerCut(1)] {
        let mut home = small();
        let (q, prices) = (queue("q"), Destination::topic("prices").unwrap());
        let broker = home.start();
        let url = format!("vm://{}?jms.clientID=c", broker.broker.name());
        let connection = ConnectionFactory::from_url(&url).unwrap().create_connection().await.unwrap();
        connection.start().unwrap();
        let session = connection.create_session(Client).await.unwrap();
        let consumer = within(session.create_durable_consumer(&prices, "d")).await.unwrap();
        send_text(&broker.session(Auto).await, &prices, "m1").await;
        let cause = Cause { kind: CauseKind::Failure, text: "E1".into(), listener: None };
        within(next(&consumer).await.release(Release::DeadLetter { cause })).await.unwrap();
        within(connection.close()).await.unwrap();
        broker.until(&queue("DLQ.topic.prices"), |counts| counts.pending == 1).await;
        assert!(fill(&home, &broker, &q).await > 0);
        let letters = broker.broker.queue("DLQ.topic.prices").unwrap();
        assert_eq!(within(letters.retry(all)).await.unwrap().done, 1, "{end:?}");
        let totals = |broker: &Running| broker.broker.durable_subscriptions()[0].totals;
        let before = totals(&broker);
        assert_eq!((before.enqueued, before.dead_lettered), (1, 1), "what is moved there was not sent again");
        let broker = home.restart(broker, end);
        assert_eq!(totals(&broker), before, "{end:?}");
        let [durable] = &*broker.broker.durable_subscriptions() else { panic!("there is one") };
        assert_eq!(durable.counts.pending, 1, "{end:?}");
        assert_eq!(broker.counts(&queue("DLQ.topic.prices")).pending, 0, "{end:?}");
        broker.stop();
    }
}

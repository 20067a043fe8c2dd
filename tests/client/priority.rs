//! Priorities (C-54).

use std::collections::HashMap;

use corriere_core::AcknowledgeMode::{Auto, Transacted};
use corriere_core::{Destination, Message, Priority, SendOptions, Session};

use crate::support::{TestBroker, next, queue, see, text};

/// 200 priorities that look random and are the same each time.
fn levels() -> impl Iterator<Item = u8> {
    (0_u32..200).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8 % 10)
}

/// Sends the messages of [`levels`], each with its number and its level as text, each in its own transaction.
async fn send_all(session: &Session, q: &Destination) {
    for (number, level) in levels().enumerate() {
        let options = SendOptions { priority: Some(Priority::new(level).unwrap()), ..SendOptions::default() };
        session.send(q, &Message::text(format!("{number} {level}")), &options).await.unwrap();
        session.commit().await.unwrap();
    }
}

fn parse(text: &str) -> (usize, u8) {
    let (number, level) = text.split_once(' ').unwrap();
    (number.parse().unwrap(), level.parse().unwrap())
}

#[tokio::test]
async fn a_consumer_that_was_there_before_the_sends_gets_them_by_priority_as_well() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer_with_prefetch(&q, 1).await.unwrap();
    send_all(&broker.session(Transacted).await, &q).await;
    let mut last = None;
    for index in 0..200 {
        let delivery = next(&consumer).await;
        let (number, level) = parse(text(&delivery));
        assert_eq!(delivery.headers().priority.level(), level);
        if index == 0 {
            // It was sent before the others were there.
            continue;
        }
        if let Some((before, higher)) = last {
            assert!(level < higher || (level == higher && number > before), "{number} after {before}");
        }
        last = Some((number, level));
    }
}

#[tokio::test]
async fn only_what_is_buffered_already_may_be_out_of_line() {
    let broker = TestBroker::start();
    let q = queue("q");
    let session = broker.session(Auto).await;
    let consumer = session.create_consumer_with_prefetch(&q, 50).await.unwrap();
    send_all(&broker.session(Transacted).await, &q).await;
    let seen: Vec<_> = see(&consumer, 200).await.iter().map(|seen| parse(&seen.text)).collect();
    assert!(seen[..50].iter().map(|(number, _)| *number).eq(0..50), "the first 50 were sent as they came");
    assert!(seen[50..].windows(2).all(|pair| pair[0].1 >= pair[1].1), "{seen:?}");
    let mut last: HashMap<u8, usize> = HashMap::new();
    for (number, level) in &seen[50..] {
        assert!(last.insert(*level, *number).is_none_or(|before| before < *number), "{number}");
    }
}

#[tokio::test]
async fn what_is_rolled_back_comes_again_before_others_of_its_priority() {
    let broker = TestBroker::start();
    let q = queue("q");
    send_all(&broker.session(Transacted).await, &q).await;
    let session = broker.session(Transacted).await;
    let consumer = session.create_consumer_with_prefetch(&q, 1).await.unwrap();
    let mut committed = Vec::new();
    for index in 0.. {
        if committed.len() == 200 {
            break;
        }
        let delivery = next(&consumer).await;
        let message = parse(text(&delivery));
        if index % 10 == 9 && delivery.count() == 1 {
            session.rollback().await.unwrap();
            let again = next(&consumer).await;
            assert_eq!((parse(text(&again)), again.count()), (message, 2));
        }
        session.commit().await.unwrap();
        committed.push(message);
    }
    let mut expected: Vec<_> = levels().enumerate().collect();
    expected.sort_by_key(|(number, level)| (std::cmp::Reverse(*level), *number));
    assert_eq!(committed, expected);
}

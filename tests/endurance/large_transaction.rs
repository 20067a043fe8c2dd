//! A transaction of a hundred thousand messages.

use corriere_core::AcknowledgeMode::{Auto, Transacted};
use corriere_core::{Destination, Message, SendOptions};

use crate::support::{broker, connect, within};

const MESSAGES: u64 = 100_000;

#[tokio::test]
async fn a_hundred_thousand_messages_are_sent_and_received_in_one_transaction_each_or_not_at_all() {
    let broker = broker(1 << 30);
    let (q, out) = (Destination::queue("q").unwrap(), Destination::queue("out").unwrap());
    let connection = connect(&broker).await;
    let session = connection.create_session(Transacted).await.unwrap();
    let options = SendOptions::default();
    for number in 0..MESSAGES {
        session.send(&q, &Message::text(number.to_string()), &options).await.unwrap();
    }
    assert_eq!(broker.counts(&q).unwrap_or_default().enqueued, 0);
    within(session.commit()).await.unwrap();
    assert_eq!(broker.counts(&q).unwrap().pending, MESSAGES);

    let consumer = session.create_consumer(&q).await.unwrap();
    for commits in [false, true] {
        for number in 0..MESSAGES {
            let delivery = within(consumer.receive()).await.unwrap().unwrap();
            assert_eq!(delivery.as_text().unwrap(), Some(number.to_string().as_str()));
            assert_eq!(delivery.count(), if commits { 2 } else { 1 });
        }
        session.send(&out, &Message::text("all of it"), &options).await.unwrap();
        if commits {
            within(session.commit()).await.unwrap();
        } else {
            within(session.rollback()).await.unwrap();
        }
    }
    let counts = broker.counts(&q).unwrap();
    assert_eq!((counts.acknowledged, counts.pending), (MESSAGES, 0));
    let looking = connection.create_session(Auto).await.unwrap();
    let consumer = looking.create_consumer(&out).await.unwrap();
    assert!(within(consumer.receive_no_wait()).await.unwrap().is_some());
    assert!(within(consumer.receive_no_wait()).await.unwrap().is_none(), "once, with the commit");
}

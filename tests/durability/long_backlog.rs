//! More messages than memory holds.

use corriere_core::AcknowledgeMode::{Auto, Transacted};
use corriere_core::{Message, SendOptions};

use crate::support::{End, Home, next, queue, size, text, within};

/// A million with `CORRIERE_BACKLOG=1000000`, and then a memory of 16 MiB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_backlog_is_kept_in_little_memory_and_drained_in_order() {
    let count = size("CORRIERE_BACKLOG", 20_000);
    let mut home = Home::on_disk();
    home.options.max_file_length = 4 << 20;
    home.settings.memory_limit = count as u64 * 16 * 1_048_576 / 1_000_000;
    let limit = home.settings.memory_limit;
    let q = queue("q");
    let broker = home.start();
    let session = broker.session(Transacted).await;
    for number in 0..count {
        let message = Message::text(format!("m{number}"));
        within(session.send(&q, &message, &SendOptions::default())).await.unwrap();
        if number % 500 == 499 || number + 1 == count {
            within(session.commit()).await.unwrap();
            assert!(broker.broker.memory_used() <= limit, "{number}: {}", broker.broker.memory_used());
        }
    }
    let broker = home.restart(broker, End::Stop);
    assert_eq!(broker.counts(&q).pending, count as u64);
    let consumer = broker.session(Auto).await.create_consumer_with_prefetch(&q, 100).await.unwrap();
    for number in 0..count {
        assert_eq!(text(next(&consumer).await.message()), format!("m{number}"));
        if number % 1_000 == 0 {
            assert!(broker.broker.memory_used() <= limit, "{number}: {}", broker.broker.memory_used());
        }
    }
    broker.until(&q, |counts| counts.pending == 0).await;
    let broker = home.restart(broker, End::Stop);
    assert_eq!(broker.drain(&q).await, []);
    broker.stop();
}

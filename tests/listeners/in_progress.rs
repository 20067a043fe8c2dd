//! Work that goes on after its listener has returned, and a message that cannot be read in the middle of it.

use corriere::containers::EndKind;
use corriere::prelude::*;

use crate::support::{Kept, Log, World, in_time, text_property};

#[jms_listener(queue = "jobs", ack = "manual", concurrency = "1-1")]
async fn begins_a_job(job: u64, delivery: Delivery, kept: Bean<Kept>, log: Bean<Log>) {
    log.add(job.to_string());
    kept.0.lock().unwrap().push(delivery);
}

/// C-05.
#[tokio::test]
async fn one_message_that_cannot_be_read_leaves_those_in_progress_on_its_session_alone() {
    let world = World::new().await;
    let kept = Bean::new(Kept::default());
    let container = world
        .start_with(begins_a_job::DEF, |settings| {
            let mut beans = corriere::Beans::new();
            beans.add("kept", kept.clone()).unwrap();
            beans.add("log", world.log.clone()).unwrap();
            settings.beans = beans.into();
        })
        .await;
    for job in ["1", "2", "3", "4", "no number"] {
        world.send_message("jobs", &Message::text(job)).await;
    }
    world.ends.wait_for(5).await;
    use EndKind::{DeadLettered, LeftToListener};
    assert_eq!(
        world.ends.kinds(),
        [LeftToListener, LeftToListener, LeftToListener, LeftToListener, DeadLettered]
    );
    let counts = world.counts("jobs");
    assert_eq!(
        (counts.acknowledged, counts.in_flight, counts.redelivered),
        (0, 4, 0),
        "four are in progress"
    );

    // They end in another order than they began.
    for (settled, index) in [(1, 2), (2, 0), (3, 3), (4, 1)] {
        let delivery = kept.0.lock().unwrap()[index].clone();
        assert_eq!((delivery.count(), delivery.headers().redelivered()), (1, false));
        in_time("the acknowledgement", delivery.acknowledge()).await.unwrap();
        assert_eq!(world.counts("jobs").acknowledged, settled, "each once");
    }
    assert_eq!(world.log.all(), ["1", "2", "3", "4"], "the listener ran once for each");
    world.until_empty("jobs").await;
    assert_eq!(world.counts("jobs").redelivered, 0);
    let dead = world.drain("DLQ.jobs").await;
    assert_eq!(dead.len(), 1);
    assert!(text_property(dead[0].properties(), "dlqDeliveryFailureCause").contains("u64"));
    assert!(in_time("the stop", container.stop()).await.is_clean());
}

//! What holds in every mode of a container.

use corriere::containers::{ContainerState, EndKind};
use corriere::prelude::*;

use crate::support::{Log, World, in_time, until};

#[jms_listener(id = "auto", queue = "a", ack = "auto")]
#[jms_listener(id = "client", queue = "a", ack = "client")]
#[jms_listener(id = "transacted", queue = "a", ack = "transacted")]
async fn at_the_gate(text: String, delivery: Delivery, log: Bean<Log>) -> Result<(), ListenerError> {
    log.add(format!("{text} {}", delivery.count()));
    log.pass_gate().await;
    if text == "fails once" && delivery.count() == 1 { Err(ListenerError::redeliver("no")) } else { Ok(()) }
}

#[jms_listener(queue = "a", ack = "manual")]
async fn at_the_gate_in_manual(
    text: String,
    delivery: Delivery,
    log: Bean<Log>,
) -> Result<(), ListenerError> {
    log.add(format!("{text} {}", delivery.count()));
    log.pass_gate().await;
    if text == "fails once" && delivery.count() == 1 {
        return Err(ListenerError::redeliver("no"));
    }
    delivery.acknowledge().await?;
    Ok(())
}

const EVERY_MODE: [corriere::listener::ListenerDef; 4] =
    [at_the_gate::AUTO, at_the_gate::CLIENT, at_the_gate::TRANSACTED, at_the_gate_in_manual::DEF];

/// Spring 2: in AUTO and `DUPS_OK`, Spring loses the message that failed.
#[tokio::test]
async fn a_message_that_fails_once_comes_again_before_those_behind_it_and_none_is_lost() {
    for listener in EVERY_MODE {
        let world = World::new().await;
        for text in ["fails once", "m2", "m3"] {
            world.send("a", text).await;
        }
        world.log.gate.add_permits(4);
        let _container = world.start(listener).await;
        world.ends.wait_for(1).await;
        world.pass_delays_until(4).await;
        assert_eq!(world.log.all(), ["fails once 1", "fails once 2", "m2 1", "m3 1"], "{}", listener.id);
        world.until_empty("a").await;
        assert_eq!(world.counts("a").acknowledged, 3, "{}", listener.id);
    }
}

/// Spring 3 and C-41 (e): in AUTO, both of Spring's containers lose what they hand over at the instant of a stop.
#[tokio::test]
async fn a_message_that_is_handed_over_while_a_stop_begins_is_handled_or_still_there() {
    for listener in EVERY_MODE {
        for prefetch in [0, 1, 10] {
            let world = World::new().await;
            let container = world.start_with(listener, |settings| settings.prefetch = prefetch).await;
            world.send("a", "m0").await;
            world.log.wait_for(1).await;
            let stopping = tokio::spawn({
                let container = container.clone();
                async move { container.stop().await }
            });
            until("the stop has begun", || container.status().state == ContainerState::Stopping).await;
            for number in 1..10 {
                world.send("a", &format!("m{number}")).await;
            }
            world.log.gate.add_permits(20);
            assert!(in_time("the stop", stopping).await.unwrap().is_clean());
            assert_eq!(world.log.all(), ["m0 1"], "{}, prefetch {prefetch}", listener.id);
            assert_eq!(world.ends.all().len(), 1);
            let left: Vec<_> = (1..10).map(|number| (format!("m{number}"), 1)).collect();
            assert_eq!(world.left_in("a").await, left, "{}, prefetch {prefetch}", listener.id);
        }
    }
}

/// Spring 3, at every instant there is: what is sent beside a stop is in exactly one of two places.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_sent_beside_a_stop_is_handled_or_still_there_and_never_both() {
    for listener in EVERY_MODE {
        for round in 0..25 {
            let world = World::new().await;
            world.log.gate.add_permits(1_000);
            let container = world.start(listener).await;
            let send = async {
                for number in 0..20 {
                    world.send("a", &format!("m{number}")).await;
                }
            };
            let stop = async {
                // Another instant in each round.
                world.log.wait_for(round % 20).await;
                container.stop().await
            };
            let ((), report) = in_time("both", async { tokio::join!(send, stop) }).await;
            assert!(report.is_clean());
            let settled = world.ends.kinds().iter().filter(|kind| is_done(**kind)).count();
            let mut all: Vec<_> = world.log.all();
            assert_eq!(settled, all.len(), "{}: every run ended well", listener.id);
            all.extend(world.left_in("a").await.into_iter().map(|(text, count)| format!("{text} {count}")));
            all.sort();
            let mut expected: Vec<_> = (0..20).map(|number| format!("m{number} 1")).collect();
            expected.sort();
            assert_eq!(all, expected, "{}, round {round}", listener.id);
        }
    }
}

const fn is_done(kind: EndKind) -> bool {
    matches!(kind, EndKind::Settled | EndKind::LeftToListener)
}

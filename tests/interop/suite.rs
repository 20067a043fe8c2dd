//! What ActiveMQ's client may expect of a broker, case by case (`java/suite`): shown on ActiveMQ itself first.

use corriere_tests::java::ActiveMq;

use crate::java::{Ended, run};
use crate::peer::Peer;

/// Every case prints a line, and says `ok`.
fn all_is_well(ended: &Ended) {
    let failed: Vec<&str> = ended.output.lines().filter(|line| !line.starts_with("ok ")).collect();
    assert!(
        failed.is_empty() && ended.status.success(),
        "{}:\n{}\n{}",
        ended.status,
        failed.join("\n"),
        ended.errors
    );
    assert!(ended.output.lines().count() >= 130, "there are fewer cases than there were:\n{}", ended.output);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_suite_is_right_about_activemq() {
    let activemq = ActiveMq::start();
    all_is_well(&run("suite.Suite", &[activemq.url(), "--peer", "activemq"]).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_keeps_its_messages_is_what_the_client_expects() {
    let directory = tempfile::tempdir().unwrap();
    let data = format!("data_directory = {:?}", directory.path().to_str().unwrap());
    let peer = Peer::start("interop-journal", &data).await;
    all_is_well(&run("suite.Suite", &[peer.url()]).await);
    let counts = peer.counts("suite.sixty_four_connections_at_once");
    assert_eq!((counts.enqueued, counts.acknowledged, counts.pending), (3_200, 3_200, 0), "{counts:?}");
    let counts = peer.counts("suite.rollbacks_end_in_the_dead_letters");
    assert_eq!((counts.enqueued, counts.acknowledged, counts.dead_lettered), (2, 1, 1), "{counts:?}");
    peer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_in_memory_with_activemqs_defaults_is_what_the_client_expects() {
    let peer = Peer::start("interop-memory", "preset = \"activemq\"").await;
    all_is_well(&run("suite.Suite", &[peer.url(), "--dead-letters", "shared", "--priorities", "off"]).await);
    peer.stop().await;
}

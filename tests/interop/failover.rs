//! Java's clients with ActiveMQ's failover transport, while our broker is stopped in order and started again.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use corriere::core::{Message, MessageId};

use crate::java::run;
use crate::peer::Peer;

/// How many messages each program sends or receives.
const COUNT: u64 = 300;

const QUEUE: &str = "orders";

/// A broker that comes again where it was, with what it kept.
struct Restarting {
    directory: tempfile::TempDir,
    name: &'static str,
    port: u16,
}

impl Restarting {
    fn new(name: &'static str) -> Self {
        // It is free again, and the system gives it to nobody else soon.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { directory: tempfile::tempdir().unwrap(), name, port }
    }

    async fn start(&self) -> Peer {
        let data = format!("data_directory = {:?}", self.directory.path().to_str().unwrap());
        Peer::start_on(self.name, self.port, &data).await
    }

    /// With as much patience as a test has.
    fn url(&self) -> String {
        format!("failover:(tcp://127.0.0.1:{})?initialReconnectDelay=20&maxReconnectDelay=100", self.port)
    }

    /// Stops and starts it again when so many more messages of the queue count by `count`, `times` times.
    async fn restart(&self, mut peer: Peer, times: u32, count: fn(&Peer) -> u64) -> Peer {
        for _ in 0..times {
            let so_many = count(&peer) + COUNT / u64::from(times + 2);
            let deadline = Instant::now() + Duration::from_secs(60);
            while count(&peer) < so_many {
                assert!(Instant::now() < deadline, "nothing comes: {:?}", peer.counts(QUEUE));
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            peer.stop_at_once().await;
            peer = self.start().await;
        }
        peer
    }
}

/// What the lines with this first word say further.
fn said<'a>(output: &'a str, word: &str) -> Vec<&'a str> {
    output.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' ')).collect()
}

/// All that is in the queue: how often each text is there, under how many ids.
async fn take_all(peer: &Peer) -> BTreeMap<String, Vec<Option<MessageId>>> {
    let mut texts = BTreeMap::<_, Vec<_>>::new();
    for _ in 0..peer.counts(QUEUE).pending {
        let message = peer.take(QUEUE).await;
        let text = message.as_text().unwrap().unwrap_or_default().to_owned();
        texts.entry(text).or_default().push(message.headers().message_id.clone());
    }
    texts
}

#[tokio::test(flavor = "multi_thread")]
async fn no_send_fails_while_the_broker_is_restarted_and_all_of_them_arrive() {
    let restarting = Restarting::new("failover-sender");
    let peer = restarting.start().await;
    let url = restarting.url();
    let count = COUNT.to_string();
    let arguments = [url.as_str(), QUEUE, &count];
    let (ended, peer) = tokio::join!(
        run("FailoverSender", &arguments),
        restarting.restart(peer, 3, |peer| peer.counts(QUEUE).pending)
    );
    let output = ended.well();
    assert_eq!(said(&output, "sent").len() as u64, COUNT, "{output}");
    assert_eq!((said(&output, "failed"), said(&output, "exception")), (vec![], vec![]));
    let texts = take_all(&peer).await;
    let missing: Vec<u64> = (0..COUNT).filter(|number| !texts.contains_key(&number.to_string())).collect();
    assert!(missing.is_empty(), "{missing:?} never arrived");
    // One may be in doubt at each stop, and comes again under the same id.
    let twice: Vec<_> = texts.iter().filter(|(_, ids)| ids.len() > 1).collect();
    let is_the_same = |ids: &[Option<MessageId>]| ids.len() == 2 && ids[0].is_some() && ids[0] == ids[1];
    assert!(twice.len() <= 3 && twice.iter().all(|(_, ids)| is_the_same(ids)), "{twice:?}");
    peer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transacted_consumer_gets_what_it_committed_once_while_the_broker_is_restarted() {
    let restarting = Restarting::new("failover-receiver");
    let peer = restarting.start().await;
    for number in 0..COUNT {
        peer.template().send_to(QUEUE, &Message::text(number.to_string())).await.unwrap();
    }
    let url = restarting.url();
    let count = COUNT.to_string();
    let arguments = [url.as_str(), QUEUE, &count];
    let (ended, peer) = tokio::join!(
        run("FailoverReceiver", &arguments),
        restarting.restart(peer, 3, |peer| peer.counts(QUEUE).acknowledged)
    );
    let output = ended.well();
    assert_eq!((said(&output, "failed"), said(&output, "exception")), (vec![], vec![]), "{output}");
    let mut committed = said(&output, "committed");
    let all = committed.len();
    committed.sort_unstable();
    committed.dedup();
    assert_eq!(committed.len(), all, "some were committed twice:\n{output}");
    // A commit that was in doubt may have been carried out.
    let in_doubt = said(&output, "rolled back");
    for number in (0..COUNT).map(|number| number.to_string()) {
        let is_there =
            committed.binary_search(&number.as_str()).is_ok() || in_doubt.contains(&number.as_str());
        assert!(is_there, "{number} never came:\n{output}");
    }
    assert_eq!(peer.counts(QUEUE).pending, 0, "{output}");
    peer.stop().await;
}

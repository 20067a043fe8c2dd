//! A storm from its begin until everything has come to rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use corriere::containers::ListenerContainer;
use corriere::core::{AcknowledgeMode, Destination};
use tokio::task::JoinSet;

use crate::arena::{Arena, Ending};
use crate::clients::{Client, Stage, live};
use crate::consumers::Consumer;
use crate::containers::{self, Post};
use crate::ledger::Ledger;
use crate::plan::{Access, Plan, Queue, Target};
use crate::producers::Producer;
use crate::standing::Standing;
use corriere_tests::random::Random;

/// Beyond this something hangs.
const HANG: Duration = Duration::from_secs(120);

/// How often the broker is asked what is pending.
const LOOK: Duration = Duration::from_millis(100);

/// With so many messages in a queue, producers pause: they are slower than a broker, and faster than a single consumer whose
/// every message is synced on a busy disk.
const FULL: u64 = 150;
const FULL_WITH_ONE_CONSUMER: u64 = 40;

/// What all who take part share.
#[derive(Debug)]
pub(crate) struct Storm {
    pub(crate) ledger: Arc<Ledger>,
    queues: Vec<Queue>,
    /// By the numbers of queues that are no subscriptions, and of topics.
    destinations: Vec<Destination>,
    topics: Vec<Destination>,
    is_producing: AtomicBool,
    is_consuming: AtomicBool,
    /// By queue, whether it was full when the broker was last asked.
    is_full: Vec<AtomicBool>,
}

impl Storm {
    fn new(plan: &Plan) -> Self {
        let queues = plan.queues.iter().filter(|queue| queue.topic.is_none());
        let producers = plan.producers.len() + plan.consumers.len() + plan.containers.len();
        Self {
            ledger: Arc::new(Ledger::new(plan.queues.clone(), producers)),
            queues: plan.queues.clone(),
            destinations: queues.map(|queue| Destination::queue(&queue.name).unwrap()).collect(),
            topics: plan.topics.iter().map(|name| Destination::topic(name).unwrap()).collect(),
            is_producing: AtomicBool::new(true),
            is_consuming: AtomicBool::new(true),
            is_full: plan.queues.iter().map(|_| AtomicBool::new(false)).collect(),
        }
    }

    pub(crate) fn destination(&self, target: Target) -> &Destination {
        match target {
            Target::Queue(number) => &self.destinations[number],
            Target::Topic(number) => &self.topics[number],
        }
    }

    /// Where messages of this queue are sent, and its name if it is a durable subscription to that.
    pub(crate) fn source(&self, queue: usize) -> (&Destination, Option<&str>) {
        match &self.queues[queue] {
            Queue { topic: Some(topic), name, .. } => (&self.topics[*topic], Some(name)),
            Queue { topic: None, .. } => (&self.destinations[queue], None),
        }
    }

    pub(crate) fn is_producing(&self) -> bool {
        self.is_producing.load(Ordering::SeqCst)
    }

    pub(crate) fn is_consuming(&self) -> bool {
        self.is_consuming.load(Ordering::SeqCst)
    }

    /// Whether so much waited where this is sent to, when the broker was last asked, that producers pause.
    pub(crate) fn is_full(&self, target: Target) -> bool {
        let mut reached = self.queues.iter().zip(&self.is_full).enumerate();
        reached.any(|(number, (queue, is_full))| {
            queue.is_reached(number, target) && is_full.load(Ordering::Relaxed)
        })
    }

    /// Notes what waits.
    fn note(&self, standing: &[Standing]) {
        for (queue, is_full) in self.queues.iter().zip(&self.is_full) {
            let full = if queue.is_lone { FULL_WITH_ONE_CONSUMER } else { FULL };
            let pending = standing.iter().find(|one| one.name == queue.name).map_or(0, |one| one.pending);
            is_full.store(pending > full, Ordering::Relaxed);
        }
    }
}

/// A storm of this seed for so long. Panics with all that was not as promised.
pub(crate) async fn rage(arena: &Arc<Arena>, seed: u64, time: Duration) {
    let plan = Plan::new(seed, arena.transports());
    let storm = Arc::new(Storm::new(&plan));
    subscribe(&storm, arena, &plan).await;
    let (crew, producers, consumers) = Crew::hire(&storm, arena, &plan).await;
    let ends = Instant::now() + time;
    let (restarts, kills, ()) = tokio::join!(
        restart(&storm, arena, Random::of(seed, 1), ends),
        crew.kill(Random::of(seed, 2), ends),
        watch(&storm, arena, ends),
    );
    storm.is_producing.store(false, Ordering::SeqCst);
    crew.join(producers, "the producers").await;
    rest(&storm, arena, "the storm").await;
    storm.is_consuming.store(false, Ordering::SeqCst);
    crew.join(consumers, "the consumers").await;
    for (container, _) in &crew.containers {
        let report = in_time("a container", container.stop()).await;
        assert!(report.is_clean(), "{report:?}");
    }
    rest(&storm, arena, "its end").await;
    drain_dead_letters(&storm, arena).await;
    arena.check_conserved(&storm.ledger).await;
    let violations = storm.ledger.judge();
    assert!(
        violations.is_empty(),
        "seed {seed}: {} things are not as promised, among them\n{}",
        violations.len(),
        violations[..violations.len().min(20)].join("\n\n")
    );
    let summary = storm.ledger.summary();
    // What comes of chances, as being heard, a machine without time may not come to.
    let all = [summary.sent, summary.settled, summary.of_those_from_subscriptions, kills];
    assert!(all.iter().all(|count| *count > 0), "seed {seed}: it was calm: {summary:?}");
    println!("seed {seed}: {kills} clients killed, the broker ended {restarts:?}; {summary:?}");
}

/// Makes the durable subscriptions, before anybody sends.
async fn subscribe(storm: &Storm, arena: &Arena, plan: &Plan) {
    let queues = plan.queues.iter().enumerate();
    for (number, queue) in queues.filter(|(_, queue)| queue.topic.is_some()) {
        let access = Access::to_subscription(arena.transports()[0], queue);
        let client = Client::new(arena, "the first".to_owned(), &access, true).await;
        let connection = in_time("a connection", client.factory().create_connection()).await.unwrap();
        let session = connection.create_session(AcknowledgeMode::Auto).await.unwrap();
        let (topic, _) = storm.source(number);
        session.create_durable_consumer(topic, &queue.name).await.unwrap();
        storm.ledger.subscribed(number);
        connection.close().await.unwrap();
    }
}

/// All who take part.
struct Crew {
    clients: Vec<Arc<Client>>,
    containers: Vec<(ListenerContainer, Arc<Post>)>,
    container_clients: Vec<Client>,
}

impl Crew {
    /// With the tasks of the producers and of the consumers, as far as they are no containers.
    async fn hire(storm: &Arc<Storm>, arena: &Arena, plan: &Plan) -> (Self, JoinSet<()>, JoinSet<()>) {
        let (mut producers, mut consumers) = (JoinSet::new(), JoinSet::new());
        let mut crew = Self { clients: Vec::new(), containers: Vec::new(), container_clients: Vec::new() };
        let mut streams = (10..).map(|number| Random::of(plan.seed, number));
        let mut random = || streams.next().unwrap();
        let mut number = 0;
        for plan in &plan.producers {
            let who = format!("producer {number} ({plan:?})");
            let client = Arc::new(Client::new(arena, who, &plan.access, false).await);
            let producer =
                Producer { storm: Arc::clone(storm), number, plan: plan.clone(), random: random() };
            producers.spawn(live(Arc::clone(storm), Arc::clone(&client), random(), producer));
            crew.clients.push(client);
            number += 1;
        }
        for plan in &plan.consumers {
            let who = format!("consumer {number} ({plan:?})");
            let client = Arc::new(Client::new(arena, who, &plan.access, plan.is_lone).await);
            let consumer =
                Consumer { storm: Arc::clone(storm), producer: number, plan: plan.clone(), random: random() };
            consumers.spawn(live(Arc::clone(storm), Arc::clone(&client), random(), consumer));
            crew.clients.push(client);
            number += 1;
        }
        for plan in &plan.containers {
            let who = format!("container {number} ({plan:?})");
            let client = Client::new(arena, who, &plan.access, false).await;
            crew.containers.push(containers::start(storm, &client, plan, number, random()));
            crew.container_clients.push(client);
            number += 1;
        }
        (crew, producers, consumers)
    }

    /// Waits for the end of these tasks, and says who it is that does not end.
    async fn join(&self, tasks: JoinSet<()>, what: &str) {
        if tokio::time::timeout(HANG, tasks.join_all()).await.is_err() {
            let busy = self.clients.iter().filter(|client| client.stage() != Stage::Over);
            let busy: Vec<String> =
                busy.map(|client| format!("{}: {:?}", client.who(), client.stage())).collect();
            panic!("{what} do not end; these are still at it:\n{}", busy.join("\n"));
        }
    }

    /// Kills one after the other until the time is over, and says how many.
    async fn kill(&self, mut random: Random, ends: Instant) -> u64 {
        let mut killed = 0;
        while Instant::now() < ends {
            tokio::time::sleep(Duration::from_millis(random.between(20, 200))).await;
            let all = self.clients.len() + self.containers.len();
            let victim = random.next() as usize % all;
            killed += u64::from(match self.clients.get(victim) {
                Some(client) => client.kill(&mut random),
                None => {
                    let index = victim - self.clients.len();
                    let (client, (_, post)) = (&self.container_clients[index], &self.containers[index]);
                    client.cut_after(|| post.lose())
                }
            });
        }
        killed
    }
}

/// Ends the broker and starts it again until the time is over, in every way at least once.
async fn restart(storm: &Storm, arena: &Arena, mut random: Random, ends: Instant) -> Vec<Ending> {
    let mut endings = Vec::new();
    let mut left = Vec::new();
    while Instant::now() < ends || !left.is_empty() || endings.is_empty() {
        tokio::time::sleep(Duration::from_millis(random.between(1_000, 6_000))).await;
        if left.is_empty() {
            left = arena.endings(random.next());
            random.shuffle(&mut left);
        }
        let Some(ending) = left.pop() else { continue };
        arena.restart(ending, &storm.ledger).await;
        endings.push(ending);
    }
    endings
}

async fn watch(storm: &Storm, arena: &Arena, ends: Instant) {
    while Instant::now() < ends {
        storm.note(&arena.standing().await);
        tokio::time::sleep(LOOK).await;
    }
    storm.note(&[]);
}

/// Waits until nothing is pending any more but dead letters, and stays so: what a client that is gone had sent may come late.
async fn rest(storm: &Storm, arena: &Arena, what: &str) {
    let begin = Instant::now();
    let mut looks = 0;
    while looks < 5 {
        let standing = arena.standing().await;
        let mut busy =
            standing.iter().filter(|one| one.pending > 0 && !is_dead_letters(&one.name)).peekable();
        looks = if busy.peek().is_none() { looks + 1 } else { 0 };
        if begin.elapsed() > HANG {
            let busy: Vec<String> = busy.map(|one| format!("{}: {}", one.name, one.counts)).collect();
            panic!(
                "{what} does not come to rest:\n{}\nof what is left:\n{}\n{}",
                busy.join("\n"),
                storm.ledger.unhandled(20).join("\n"),
                storm.ledger.judge().join("\n\n")
            );
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn is_dead_letters(name: &str) -> bool {
    name.starts_with("DLQ.")
}

/// Takes all dead letters and notes them.
async fn drain_dead_letters(storm: &Storm, arena: &Arena) {
    let access = Access::plain(arena.transports()[0]);
    let client = Client::new(arena, "the last".to_owned(), &access, true).await;
    let connection = in_time("a connection", client.factory().create_connection()).await.unwrap();
    connection.start().unwrap();
    let session = connection.create_session(AcknowledgeMode::Client).await.unwrap();
    for queue in arena.standing().await.iter().filter(|queue| is_dead_letters(&queue.name)) {
        let queue = Destination::queue(&queue.name).unwrap();
        let consumer = session.create_consumer_with_prefetch(&queue, 0).await.unwrap();
        while let Some(letter) = in_time("a dead letter", consumer.receive_no_wait()).await.unwrap() {
            storm.ledger.found_dead(&letter);
            letter.acknowledge().await.unwrap();
        }
        consumer.close().await.unwrap();
    }
    connection.close().await.unwrap();
}

async fn in_time<F: Future>(what: &str, future: F) -> F::Output {
    let future = Box::pin(future);
    tokio::time::timeout(HANG, future).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

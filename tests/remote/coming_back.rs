//! Templates and containers whose broker goes and comes back, at an address that stays the same.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use corriere::containers::{ContainerSettings, ListenerContainer};
use corriere::prelude::*;
use corriere::templates::JsonConverter;
use corriere_broker::files::RecordedFiles;
use corriere_broker::journal::{JournalOptions, JournalStore};
use corriere_broker::{Broker, Counts, Settings};
use corriere_core::{AcknowledgeMode, Clock, ConnectionFactory, Destination, RedeliveryPolicy};
use corriere_openwire::acceptor::{Acceptor, AcceptorOptions};
use corriere_templates::JmsTemplate;
use corriere_tests::lines::Lines;
use tracing::Level;

use crate::cable::Cable;
use crate::peer::{eventually, queue, within};

/// A broker on a journal that is started again on what it left.
struct Site {
    files: RecordedFiles,
    running: Option<(Broker, Acceptor)>,
}

impl Site {
    fn new() -> Self {
        Self { files: RecordedFiles::new(), running: None }
    }

    /// Starts the broker, and says where it is now.
    async fn start(&mut self) -> String {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let name = format!("coming-back-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let options = JournalOptions::new(PathBuf::from("/data/broker"));
        let store = JournalStore::open(Arc::new(self.files.clone()), options).unwrap();
        let redelivery = RedeliveryPolicy {
            initial_delay: Duration::ZERO,
            delay: Duration::ZERO,
            ..RedeliveryPolicy::default()
        };
        let settings = Settings { redelivery, ..Settings::default() };
        let broker = Broker::start(&name, settings, Arc::new(store), Clock::system()).unwrap();
        let served = Arc::new(broker.clone());
        let acceptor = Acceptor::bind("tcp://127.0.0.1:0", served, AcceptorOptions::default()).await.unwrap();
        let url = acceptor.url();
        self.running = Some((broker, acceptor));
        url
    }

    async fn stop(&mut self) {
        let (broker, acceptor) = self.running.take().unwrap();
        within(acceptor.stop()).await;
        broker.stop();
    }

    fn counts(&self, name: &str) -> Counts {
        self.running.as_ref().unwrap().0.counts(&queue(name)).unwrap_or_default()
    }
}

#[jms_listener(id = "on_polled_work", queue = "work", ack = "transacted", send_to = "results")]
#[jms_listener(id = "on_pushed_work", queue = "work", ack = "transacted", send_to = "results")]
async fn on_work(number: u32) -> u32 {
    number
}

#[jms_listener(
    topic = "prices",
    subscription = "audit",
    client_id = "auditor",
    ack = "transacted",
    send_to = "results"
)]
async fn on_price(number: u32) -> u32 {
    number
}

/// Sends numbers from a template, and knows which of them are confirmed.
struct Sender {
    template: JmsTemplate,
    next: u32,
    confirmed: Vec<u32>,
}

impl Sender {
    async fn send(&mut self) -> bool {
        self.next += 1;
        let sent = within(self.template.convert_and_send_to("work", &self.next)).await;
        if sent.is_ok() {
            self.confirmed.push(self.next);
        }
        sent.is_ok()
    }

    async fn send_all(&mut self, count: usize) {
        for _ in 0..count {
            assert!(self.send().await);
        }
    }

    /// The first or the second send after a return works.
    async fn goes_on(&mut self) {
        assert!(self.send().await || self.send().await);
    }
}

/// C-17 and Spring 14, for a broker that is absent at the start, one that is killed and restarted under load, and a
/// connection that is cut. How long a broker is away only makes more attempts, so it is away for some of them.
#[tokio::test]
async fn a_template_and_a_container_resume_after_every_outage_and_nothing_is_done_twice() {
    let lines = Lines::of_the_process(Level::WARN);
    for (listener, prefetch) in [(on_work::ON_POLLED_WORK, 0), (on_work::ON_PUSHED_WORK, 10)] {
        let mut site = Site::new();
        let cable = Cable::to(&site.start().await).await;
        cable.unplug();
        let factory = ConnectionFactory::from_url(&cable.url()).unwrap();
        let template = JmsTemplate::builder(factory.clone()).sessions(5).build().unwrap();
        let mut sender = Sender { template, next: 0, confirmed: Vec::new() };
        let container = ListenerContainer::start(
            listener,
            ContainerSettings {
                acknowledge: listener.acknowledge.unwrap(),
                send_to: Some(queue("results")),
                prefetch,
                back_off: Duration::from_millis(5),
                maximum_back_off: Duration::from_millis(50),
                ..ContainerSettings::new(factory, queue("work"), Arc::new(JsonConverter::default()))
            },
        )
        .unwrap();
        for _ in 0..5 {
            assert!(!sender.send().await, "an error while it is away");
        }
        eventually("its error to be shown", || {
            container.status().connection_error.map(drop).ok_or_else(|| "none".to_owned())
        })
        .await;
        let warnings = || lines.with(&[listener.id, "cannot receive; trying again"]).len();
        assert!(warnings() > 0, "{}: it is a warning, not a word for debugging", listener.id);

        cable.plug_into(site.running.as_ref().unwrap().1.url().as_str());
        sender.goes_on().await;
        within(container.ready()).await;
        assert_eq!(container.status().connection_error, None);
        for outage in ["restart", "cut", "restart", "cut"] {
            sender.send_all(20).await;
            if outage == "restart" {
                cable.unplug();
                site.stop().await;
                for _ in 0..10 {
                    assert!(!sender.send().await, "an error while it is away");
                }
                // They are told of at the first, the second, the fourth and the eighth attempt, by when the pause is longest.
                let before = warnings();
                eventually("more attempts", || {
                    let more = warnings() - before;
                    if more >= 3 { Ok(()) } else { Err(format!("{more} warnings")) }
                })
                .await;
                cable.plug_into(&site.start().await);
            } else {
                cable.cut();
            }
            sender.goes_on().await;
            eventually("the container to be back", || {
                let status = container.status();
                if status.subscribed == 1 { Ok(()) } else { Err(format!("{status:?}")) }
            })
            .await;
        }
        sender.send_all(20).await;
        eventually("all to be handled", || {
            let counts = site.counts("work");
            if counts.pending == 0 { Ok(()) } else { Err(format!("{counts:?}")) }
        })
        .await;
        assert!(within(container.stop()).await.is_clean());
        let results = results(&site).await;
        for number in 1..=sender.next {
            let times = results.iter().filter(|result| **result == number).count();
            // A send whose confirmation was lost is there once or not at all.
            let is_right = if sender.confirmed.contains(&number) { times == 1 } else { times <= 1 };
            assert!(is_right, "{number} was handled {times} times");
        }
        assert_eq!(site.counts("DLQ.work").pending, 0);
        site.stop().await;
    }
}

/// Publishes a number beside all cables.
async fn publish(site: &Site, number: u32) {
    let name = site.running.as_ref().unwrap().0.name().to_owned();
    let factory = ConnectionFactory::from_url(&format!("vm://{name}")).unwrap();
    let template = JmsTemplate::builder(factory).build().unwrap();
    let prices = Destination::topic("prices").unwrap();
    within(template.convert_and_send_to(&prices, &number)).await.unwrap();
}

/// C-17, for a durable subscription: what was published while its container was away, or the broker after it, is kept for it.
#[tokio::test]
async fn a_durable_container_gets_once_what_was_published_while_it_or_its_broker_was_away() {
    let mut site = Site::new();
    let cable = Cable::to(&site.start().await).await;
    let factory = ConnectionFactory::from_url(&cable.url()).unwrap().with_client_id("auditor");
    let listener = on_price::DEF;
    let container = ListenerContainer::start(
        listener,
        ContainerSettings {
            subscription: listener.subscription.map(Into::into),
            acknowledge: listener.acknowledge.unwrap(),
            send_to: Some(queue("results")),
            back_off: Duration::from_millis(5),
            maximum_back_off: Duration::from_millis(50),
            ..ContainerSettings::new(
                factory,
                Destination::topic("prices").unwrap(),
                Arc::new(JsonConverter::default()),
            )
        },
    )
    .unwrap();
    within(container.ready()).await;
    let mut numbers = 0..;
    for outage in ["cut", "restart", "kept over a restart", "cut"] {
        for number in numbers.by_ref().take(20) {
            publish(&site, number).await;
        }
        // Some of these are under way when it goes.
        if outage == "cut" {
            cable.cut();
        } else {
            cable.unplug();
            if outage == "kept over a restart" {
                for number in numbers.by_ref().take(20) {
                    publish(&site, number).await;
                }
            }
            site.stop().await;
            let url = site.start().await;
            for number in numbers.by_ref().take(20) {
                publish(&site, number).await;
            }
            cable.plug_into(&url);
        }
        eventually("the backlog to be handled", || {
            let waiting = site.running.as_ref().unwrap().0.durable_subscriptions();
            match &waiting[..] {
                [audit] if audit.is_active && audit.counts.pending == 0 => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }
    assert!(within(container.stop()).await.is_clean());
    let mut results = results(&site).await;
    results.sort_unstable();
    assert_eq!(results, (0..numbers.start).collect::<Vec<_>>());
    site.stop().await;
}

async fn results(site: &Site) -> Vec<u32> {
    let name = site.running.as_ref().unwrap().0.name().to_owned();
    let connection =
        ConnectionFactory::from_url(&format!("vm://{name}")).unwrap().create_connection().await.unwrap();
    connection.start().unwrap();
    let session = connection.create_session(AcknowledgeMode::Auto).await.unwrap();
    let consumer = session.create_consumer(&queue("results")).await.unwrap();
    let mut results = Vec::new();
    while let Some(result) = within(consumer.receive_no_wait()).await.unwrap() {
        results.push(result.as_text().unwrap().unwrap().parse().unwrap());
    }
    results
}

//! Our broker, as an application starts it from its configuration.

use std::time::{Duration, Instant};

use corriere::broker::Counts;
use corriere::config::Document;
use corriere::core::{Destination, Message};
use corriere::prelude::*;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// An application with nothing but a broker that listens on a free port.
#[derive(Debug)]
pub(crate) struct Peer {
    app: Application,
    url: String,
}

impl Peer {
    /// With these keys of `[broker]`, besides the name.
    pub(crate) async fn start(name: &str, more: &str) -> Self {
        Self::start_on(name, 0, more).await
    }

    /// On a port that was free.
    pub(crate) async fn start_on(name: &str, port: u16, more: &str) -> Self {
        let text = format!(
            "[broker]\nname = \"{name}\"\nlisten = [\"tcp://127.0.0.1:{port}\"]\n{more}\n[message_converters.text]\ntype = \"text\"\n\
             [templates.any]\nmessage_converter = \"text\"\nreceive_timeout = \"60s\""
        );
        let document = Document::from_text("config.toml", &text).unwrap();
        let app = Application::from_document(document).listeners([]).start().await.unwrap();
        let [url] = app.listen_urls().try_into().unwrap();
        Self { app, url }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A template of this process, without a wire.
    pub(crate) fn template(&self) -> JmsTemplate {
        self.app.bean("any").unwrap()
    }

    /// The next message of a queue, which must come.
    pub(crate) async fn take(&self, queue: &str) -> Message {
        self.template().receive_from(queue).await.unwrap().unwrap()
    }

    pub(crate) fn counts(&self, queue: &str) -> Counts {
        self.app.broker().unwrap().counts(&Destination::queue(queue).unwrap()).unwrap_or_default()
    }

    /// Ends it as SIGTERM does, whatever its clients do.
    pub(crate) async fn stop_at_once(self) {
        self.app.stop().await;
    }

    /// Ends it, once all clients of other processes are gone: then nothing is with a consumer, and no message vanished.
    pub(crate) async fn stop(self) {
        let broker = self.app.broker().unwrap();
        let deadline = Instant::now() + PATIENCE;
        for destination in broker.destinations() {
            loop {
                let counts = broker.counts(&destination).unwrap_or_default();
                assert!(counts.are_conserved(), "{destination}: {counts:?}");
                if counts.in_flight == 0 {
                    break;
                }
                assert!(Instant::now() < deadline, "{destination} is still with a consumer: {counts:?}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        self.app.stop().await;
    }
}

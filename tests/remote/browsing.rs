//! Looking at a queue without consuming.

use corriere_core::id::SubscriptionId;
use corriere_core::provider::{Capability, Command, Event, ProviderError};

use crate::peer::{Peer, firsts, see, text, within};
use crate::seam::{Client, SESSION, assert_not_offered};

over_each_peer! {
    a_browser_shows_what_is_there_as_it_is_granted_and_says_when_that_was_all,
    a_browser_of_an_empty_queue_is_over_at_once,
    a_browser_that_is_closed_before_its_end_leaves_the_queue_as_it_was,
    only_a_queue_is_browsed,
    a_long_queue_is_shown_to_its_end_in_order,
}

const BROWSER: SubscriptionId = SubscriptionId(1);

fn browse(destination: &corriere_core::Destination) -> Command {
    Command::Browse {
        subscription: BROWSER,
        session: SESSION,
        destination: destination.clone(),
        selector: None,
    }
}

fn is_over(event: &Event) -> bool {
    matches!(event, Event::BrowseEnded { subscription } if *subscription == BROWSER)
}

fn texts(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("m{number}")).collect()
}

async fn a_browser_shows_what_is_there_as_it_is_granted_and_says_when_that_was_all(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 12).await;
    let client = Client::connect(peer).await;
    let opened = client.ask(browse(&q)).await;
    if !client.offers(Capability::Browse) {
        assert_not_offered(opened);
        return;
    }
    opened.unwrap();
    assert!(client.came.deliveries.lock().unwrap().is_empty(), "nothing is granted yet");
    client.tell(Command::Grant { subscription: BROWSER, credit: 5 });
    assert_eq!(client.texts(5).await, texts(5));
    assert!(!client.came.events.lock().unwrap().iter().any(is_over));
    client.tell(Command::Grant { subscription: BROWSER, credit: 10 });
    client.event("the end of the browser", is_over).await;
    assert_eq!(client.texts(12).await, texts(12));
    client.ask(Command::CloseSubscription { subscription: BROWSER, last_handed_over: 12 }).await.unwrap();
    assert_eq!(peer.drain(&q, 12).await, firsts(1..=12));
}

async fn a_browser_of_an_empty_queue_is_over_at_once(peer: &Peer) {
    let client = Client::connect(peer).await;
    let opened = client.ask(browse(&peer.queue("q"))).await;
    if !client.offers(Capability::Browse) {
        assert_not_offered(opened);
        return;
    }
    opened.unwrap();
    client.event("the end of the browser", is_over).await;
}

async fn a_browser_that_is_closed_before_its_end_leaves_the_queue_as_it_was(peer: &Peer) {
    let q = peer.queue("q");
    peer.send_numbered(&q, 3).await;
    let client = Client::connect(peer).await;
    let opened = client.ask(browse(&q)).await;
    if !client.offers(Capability::Browse) {
        assert_not_offered(opened);
        return;
    }
    client.tell(Command::Grant { subscription: BROWSER, credit: 1 });
    assert_eq!(client.texts(1).await, texts(1));
    client.ask(Command::CloseSubscription { subscription: BROWSER, last_handed_over: 1 }).await.unwrap();
    assert_eq!(peer.drain(&q, 3).await, firsts(1..=3));
}

async fn only_a_queue_is_browsed(peer: &Peer) {
    let client = Client::connect(peer).await;
    let opened = client.ask(browse(&peer.topic("t"))).await;
    if client.offers(Capability::Browse) {
        let error = opened.unwrap_err();
        assert!(matches!(error, ProviderError::InvalidDestination { .. }), "{error}");
    }
}

async fn a_long_queue_is_shown_to_its_end_in_order(peer: &Peer) {
    let q = peer.queue("q?consumer.prefetchSize=7");
    peer.send_numbered(&q, 300).await;
    let session = peer.session(corriere_core::AcknowledgeMode::Auto).await;
    let mut browser = within(session.create_browser(&q)).await.unwrap();
    let mut shown = Vec::new();
    while let Some(message) = within(browser.next()).await.unwrap() {
        shown.push(text(&message).to_owned());
    }
    assert_eq!(shown, texts(300));
    within(browser.close()).await.unwrap();
    let consumer = within(session.create_consumer(&q)).await.unwrap();
    assert_eq!(see(&consumer, 300).await, firsts(1..=300));
}

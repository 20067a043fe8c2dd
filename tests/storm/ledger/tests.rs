//! That the ledger reports what a broker must not do, and only that: each story is told to it without any broker.

use std::sync::Arc;

use corriere::core::provider::ProviderError;
use corriere::core::{Error, Message};

use super::{End, Fate, Holder, Ledger, Name, Sending, Taken, TransactionNumber};
use crate::plan::{Queue, Target};

/// A queue, one that redelivers once and has one consumer, and two subscriptions to the only topic.
const ORDERS: usize = 0;
const LIMITED: usize = 1;
const FIRST: usize = 2;
const SECOND: usize = 3;

const TO_ORDERS: Target = Target::Queue(ORDERS);
const TO_LIMITED: Target = Target::Queue(LIMITED);
const TO_TOPIC: Target = Target::Topic(0);

/// A ledger with one producer, and what is told to it.
struct Story {
    ledger: Ledger,
    producer: Arc<Holder>,
}

fn story() -> Story {
    let queue = |name: &str, topic, is_lone, maximum_redeliveries| Queue {
        name: name.to_owned(),
        topic,
        is_lone,
        maximum_redeliveries,
    };
    let queues = vec![
        queue("orders", None, false, None),
        queue("limited", None, true, Some(1)),
        queue("first", Some(0), true, None),
        queue("second", Some(0), true, None),
    ];
    let ledger = Ledger::new(queues, 1);
    ledger.subscribed(FIRST);
    ledger.subscribed(SECOND);
    Story { ledger, producer: client("producer") }
}

fn client(who: &str) -> Arc<Holder> {
    Arc::new(Holder::new(who.to_owned(), 1))
}

fn message(name: Name, count: u32) -> Message {
    let mut message = Message::text(format!("{} {} and more", name.producer, name.number));
    message.headers_mut().delivery_count = count;
    message
}

impl Story {
    fn sending(&self, to: Target, is_persistent: bool, transaction: Option<TransactionNumber>) -> Name {
        let sending = Sending { to, is_persistent, transaction, is_in_line: true };
        self.ledger.sending(0, &self.producer, sending)
    }

    fn sent(&self, to: Target) -> Name {
        let name = self.sending(to, true, None);
        self.ledger.sent(name, Ok(()));
        name
    }

    fn received(&self, by: &Arc<Holder>, from: usize, name: Name, count: u32, end: End) -> Taken {
        self.ledger.handed_over(by, from, &message(name, count), end, None)
    }

    fn handled(&self, by: &Arc<Holder>, from: usize, name: Name) -> Taken {
        let taken = self.received(by, from, name, 1, End::Held);
        self.ledger.end(&[taken], End::Settled);
        taken
    }

    fn given_back(&self, taken: Taken) {
        self.ledger.end(&[taken], End::GivenBack);
        self.ledger.given_back(&[taken]);
    }

    /// The broker ends, and there it is again.
    fn restart(&self) -> Arc<Holder> {
        self.ledger.turn();
        self.ledger.turn();
        Arc::new(Holder::new("a client of the next life".to_owned(), self.ledger.life().unwrap()))
    }

    #[track_caller]
    fn is_as_promised(&self) {
        let violations = self.ledger.judge();
        assert!(violations.is_empty(), "{}", violations.join("\n"));
    }

    #[track_caller]
    fn is_reported(&self, fault: &str) {
        let violations = self.ledger.judge();
        assert!(violations.iter().any(|violation| violation.contains(fault)), "{violations:?}");
    }
}

#[test]
fn what_every_queue_and_subscription_handled_is_as_promised() {
    let (story, consumer) = (story(), client("consumer"));
    let (order, news) = (story.sent(TO_ORDERS), story.sent(TO_TOPIC));
    let taken = story.received(&consumer, ORDERS, order, 1, End::Held);
    story.given_back(taken);
    let taken = story.received(&consumer, ORDERS, order, 2, End::Held);
    story.ledger.end(&[taken], End::Settled);
    story.handled(&consumer, FIRST, news);
    story.handled(&consumer, SECOND, news);
    story.is_as_promised();
}

#[test]
fn a_message_that_nobody_handled_is_lost() {
    let story = story();
    story.sent(TO_ORDERS);
    story.is_reported("is lost");
}

#[test]
fn a_message_that_was_given_back_and_not_seen_again_is_lost() {
    let (story, consumer) = (story(), client("consumer"));
    let order = story.sent(TO_ORDERS);
    story.given_back(story.received(&consumer, ORDERS, order, 1, End::Held));
    story.is_reported("is lost");
}

#[test]
fn a_message_that_one_of_two_subscriptions_did_not_get_is_lost() {
    let (story, consumer) = (story(), client("consumer"));
    let news = story.sent(TO_TOPIC);
    story.handled(&consumer, FIRST, news);
    story.is_reported("is lost");
}

#[test]
fn a_publish_in_doubt_is_in_every_subscription_or_in_none() {
    let nowhere = story();
    nowhere.sending(TO_TOPIC, true, None);
    nowhere.is_as_promised();
    let (story, consumer) = (story(), client("consumer"));
    let news = story.sending(TO_TOPIC, true, None);
    story.handled(&consumer, SECOND, news);
    story.is_reported("is lost");
}

#[test]
fn a_subscription_is_owed_only_what_was_sent_while_it_was_there() {
    let (story, consumer) = (story(), client("consumer"));
    let before = story.sent(TO_TOPIC);
    story.ledger.unsubscribing(FIRST);
    let meanwhile = story.sent(TO_TOPIC);
    story.ledger.unsubscribed(FIRST);
    story.ledger.subscribed(FIRST);
    for news in [before, meanwhile] {
        story.handled(&consumer, SECOND, news);
    }
    story.is_as_promised();
    let after = story.sent(TO_TOPIC);
    story.handled(&consumer, SECOND, after);
    story.is_reported("is lost");
}

#[test]
fn what_waited_in_a_subscription_that_was_removed_must_not_come() {
    let (story, consumer) = (story(), client("consumer"));
    let news = story.sent(TO_TOPIC);
    story.handled(&consumer, SECOND, news);
    story.ledger.unsubscribing(FIRST);
    story.ledger.unsubscribed(FIRST);
    story.ledger.subscribed(FIRST);
    story.handled(&consumer, FIRST, news);
    story.is_reported("from a subscription that was removed");
}

#[test]
fn a_message_that_comes_from_where_it_was_not_sent_is_reported() {
    let (story, consumer) = (story(), client("consumer"));
    let order = story.sent(TO_ORDERS);
    story.handled(&consumer, ORDERS, order);
    story.handled(&consumer, FIRST, order);
    story.is_reported("where it was not sent");
}

#[test]
fn a_send_that_was_refused_must_not_be_there() {
    let (story, consumer) = (story(), client("consumer"));
    let order = story.sending(TO_ORDERS, true, None);
    let (message_id, destination) = ("ID:1".to_owned(), "queue://orders".to_owned());
    let error = ProviderError::NoRoom { message_id, destination, reason: "the memory is full".to_owned() };
    story.ledger.sent(order, Err(&Error::from(error)));
    story.is_as_promised();
    story.handled(&consumer, ORDERS, order);
    story.is_reported("its send did not take place");
}

#[test]
fn a_send_that_was_rolled_back_must_not_be_there() {
    let (story, consumer) = (story(), client("consumer"));
    let transaction = story.ledger.begin();
    let order = story.sending(TO_ORDERS, true, Some(transaction));
    story.ledger.end_transaction(transaction, Fate::RolledBack);
    story.is_as_promised();
    story.handled(&consumer, ORDERS, order);
    story.is_reported("its send did not take place");
}

#[test]
fn a_message_that_came_back_after_a_confirmed_acknowledgement_is_reported_on_each_subscription_by_itself() {
    let (story, consumer) = (story(), client("consumer"));
    let news = story.sent(TO_TOPIC);
    story.handled(&consumer, FIRST, news);
    story.handled(&consumer, SECOND, news);
    let later = story.restart();
    story.received(&later, SECOND, news, 1, End::Returned);
    story.is_reported("came back after its end was confirmed");
}

#[test]
fn a_message_that_came_back_while_its_acknowledgement_was_confirmed_is_reported() {
    let (story, consumer) = (story(), client("consumer"));
    let order = story.sent(TO_ORDERS);
    let taken = story.received(&consumer, ORDERS, order, 1, End::Settling);
    story.received(&client("another"), ORDERS, order, 2, End::Settling);
    story.ledger.end(&[taken], End::Settled);
    story.is_reported("was handed over again before its end was confirmed");
}

#[test]
fn a_message_that_came_back_after_a_confirmed_commit_is_reported() {
    let (story, consumer) = (story(), client("consumer"));
    let order = story.sent(TO_ORDERS);
    let transaction = story.ledger.begin();
    story.ledger.handed_over(&consumer, ORDERS, &message(order, 1), End::Held, Some(transaction));
    story.ledger.end_transaction(transaction, Fate::Committed);
    let later = story.restart();
    story.received(&later, ORDERS, order, 2, End::Returned);
    story.is_reported("came back after its end was confirmed");
}

#[test]
fn a_message_that_two_clients_have_at_once_is_reported() {
    let (story, consumer) = (story(), client("consumer"));
    let order = story.sent(TO_ORDERS);
    story.received(&consumer, ORDERS, order, 1, End::Held);
    story.received(&client("another"), ORDERS, order, 2, End::Returned);
    story.is_reported("is with two clients at once");
}

#[test]
fn a_send_in_doubt_that_is_there_twice_is_reported() {
    let (story, consumer) = (story(), client("consumer"));
    let order = story.sending(TO_ORDERS, true, None);
    story.handled(&consumer, ORDERS, order);
    story.is_as_promised();
    story.handled(&consumer, ORDERS, order);
    story.is_reported("came back after its end was confirmed");
}

#[test]
fn an_acknowledgement_that_nobody_confirmed_may_be_lost_with_its_client_and_otherwise_not() {
    let (story, consumer, other) = (story(), client("consumer"), client("another"));
    let [lost, kept] = [(); 2].map(|()| story.sent(TO_ORDERS));
    story.received(&consumer, ORDERS, lost, 1, End::Returned);
    consumer.lose();
    story.received(&other, ORDERS, lost, 2, End::Returned);
    story.received(&other, ORDERS, kept, 1, End::Returned);
    story.is_as_promised();
    story.received(&client("a third"), ORDERS, kept, 2, End::Returned);
    story.is_reported("the client that received it was not lost");
}

#[test]
fn an_acknowledgement_that_the_broker_heard_of_is_lost_with_a_broker_that_was_killed_only() {
    let (story, consumer) = (story(), client("consumer"));
    let orders = [(); 2].map(|()| story.sent(TO_ORDERS));
    let heard = orders.map(|order| story.received(&consumer, ORDERS, order, 1, End::Returned));
    story.ledger.end(&heard, End::Heard);
    consumer.lose();
    story.received(&client("another"), ORDERS, orders[0], 2, End::Returned);
    story.is_reported("the broker had heard");
    let later = story.restart();
    story.received(&later, ORDERS, orders[1], 2, End::Returned);
    story.is_as_promised();
}

#[test]
fn an_acknowledgement_that_the_broker_heard_of_is_not_lost_with_one_that_ended_in_order() {
    let (story, consumer) = (story(), client("consumer"));
    let order = story.sent(TO_ORDERS);
    let taken = story.received(&consumer, ORDERS, order, 1, End::Returned);
    story.ledger.end(&[taken], End::Heard);
    story.ledger.turn_in_order();
    story.ledger.turn();
    let later = story.restart();
    story.received(&later, ORDERS, order, 2, End::Returned);
    story.is_reported("the broker had heard");
}

#[test]
fn a_commit_in_doubt_of_which_one_destination_has_nothing_was_carried_out_in_part() {
    let (story, consumer) = (story(), client("consumer"));
    let transaction = story.ledger.begin();
    let order = story.sending(TO_ORDERS, true, Some(transaction));
    let news = story.sending(TO_TOPIC, true, Some(transaction));
    story.ledger.end_transaction(transaction, Fate::InDoubt);
    story.is_as_promised();
    story.handled(&consumer, ORDERS, order);
    story.is_reported("was carried out in part");
    for subscription in [FIRST, SECOND] {
        story.handled(&consumer, subscription, news);
    }
    story.is_as_promised();
}

#[test]
fn a_commit_in_doubt_whose_send_is_there_and_what_it_received_comes_again_was_carried_out_in_part() {
    let (story, consumer) = (story(), client("consumer"));
    let news = story.sent(TO_TOPIC);
    story.handled(&consumer, SECOND, news);
    let transaction = story.ledger.begin();
    story.ledger.handed_over(&consumer, FIRST, &message(news, 1), End::Held, Some(transaction));
    let order = story.sending(TO_ORDERS, true, Some(transaction));
    story.ledger.end_transaction(transaction, Fate::InDoubt);
    let later = story.restart();
    story.handled(&later, ORDERS, order);
    story.is_as_promised();
    story.received(&later, FIRST, news, 2, End::Returned);
    story.is_reported("was carried out in part");
}

#[test]
fn of_a_commit_in_doubt_what_is_not_persistent_shows_nothing_by_its_absence() {
    let story = story();
    let transaction = story.ledger.begin();
    let [order, _fleeting] =
        [true, false].map(|is_persistent| story.sending(TO_ORDERS, is_persistent, Some(transaction)));
    story.ledger.end_transaction(transaction, Fate::InDoubt);
    let later = story.restart();
    story.handled(&later, ORDERS, order);
    story.is_as_promised();
}

#[test]
fn of_a_commit_in_doubt_what_is_not_persistent_and_there_shows_that_the_rest_is_missing() {
    let (story, consumer) = (story(), client("consumer"));
    let transaction = story.ledger.begin();
    let [_order, fleeting] =
        [true, false].map(|is_persistent| story.sending(TO_ORDERS, is_persistent, Some(transaction)));
    story.ledger.end_transaction(transaction, Fate::InDoubt);
    story.handled(&consumer, ORDERS, fleeting);
    story.is_reported("was carried out in part");
}

#[test]
fn a_message_that_overtakes_an_earlier_one_of_its_producer_on_a_subscription_is_reported() {
    let (story, consumer) = (story(), client("consumer"));
    let [earlier, later] = [(); 2].map(|()| story.sent(TO_TOPIC));
    for news in [earlier, later] {
        story.handled(&consumer, FIRST, news);
    }
    for news in [later, earlier] {
        story.handled(&consumer, SECOND, news);
    }
    story.is_reported("message 1 of producer 0 overtook message 0 of producer 0 on second");
}

#[test]
fn what_waits_for_its_redelivery_may_be_overtaken() {
    let (story, consumer) = (story(), client("consumer"));
    let [earlier, later] = [(); 2].map(|()| story.sent(TO_LIMITED));
    story.given_back(story.received(&consumer, LIMITED, earlier, 1, End::Held));
    story.handled(&consumer, LIMITED, later);
    let again = story.received(&consumer, LIMITED, earlier, 2, End::Held);
    story.ledger.end(&[again], End::Settled);
    story.is_as_promised();
}

#[test]
fn a_message_that_failed_once_too_often_is_among_the_dead_letters_and_nowhere_else() {
    let (story, consumer) = (story(), client("consumer"));
    let order = story.sent(TO_LIMITED);
    for count in 1..=2 {
        story.given_back(story.received(&consumer, LIMITED, order, count, End::Held));
    }
    story.is_reported("is missing among the dead letters");
    story.ledger.found_dead(&message(order, 1));
    story.is_as_promised();
    story.received(&consumer, LIMITED, order, 3, End::Held);
    story.is_reported("was redelivered more often than its queue allows");
}

#[test]
fn a_dead_letter_that_nobody_sent_there_is_reported() {
    let (story, consumer) = (story(), client("consumer"));
    let news = story.sent(TO_TOPIC);
    story.handled(&consumer, FIRST, news);
    let taken = story.received(&consumer, SECOND, news, 1, End::Held);
    story.ledger.end(&[taken], End::DeadLettered);
    story.ledger.found_dead(&message(news, 1));
    story.is_as_promised();
    story.ledger.found_dead(&message(news, 1));
    story.is_reported("more often than anybody sent it there");
}

#[test]
fn a_count_of_deliveries_that_did_not_take_place_is_reported() {
    let (story, consumer) = (story(), client("consumer"));
    let order = story.sent(TO_ORDERS);
    story.received(&consumer, ORDERS, order, 2, End::Returned);
    story.is_reported("counts more deliveries than there were");
}

#[test]
fn what_a_client_received_that_was_parted_from_the_broker_says_nothing_of_it() {
    let (story, consumer) = (story(), client("consumer"));
    let order = story.sent(TO_ORDERS);
    story.handled(&consumer, ORDERS, order);
    story.ledger.turn();
    story.received(&consumer, ORDERS, order, 1, End::Held);
    story.ledger.turn();
    story.is_as_promised();
}

use super::*;

/// What the peer's own list of such a consumer holds, by which acknowledgements are judged as ActiveMQ judges them.
#[derive(Default)]
struct PeersList(Vec<i64>);

impl PeersList {
    /// Takes a range out; it must be there whole, and of the length that is said.
    fn settle(&mut self, run: &Run) {
        let place = |id: &MessageId| {
            let number = id.producer_sequence_id;
            self.0
                .iter()
                .position(|one| *one == number)
                .unwrap_or_else(|| panic!("{number} is not in {:?}", self.0))
        };
        let (first, last) = (place(&run.first), place(&run.last));
        assert_eq!(last + 1 - first, run.count, "the range of {run:?} in {:?}", self.0);
        self.0.drain(first..=last);
    }
}

fn id(number: i64) -> MessageId {
    MessageId { producer_sequence_id: number, broker_sequence_id: 100 + number, ..MessageId::default() }
}

fn with(flow: Flow, redelivery: Redelivery) -> Subscription {
    let destination = Destination::new(corriere_core::DestinationKind::Queue, "q");
    let consumer = ConsumerId::default();
    Subscription::new(SubscriptionId(1), SessionId(1), consumer, destination, flow, redelivery)
}

fn windowed(prefetch: u32, extension: Option<u32>) -> Subscription {
    let policy =
        RedeliveryPolicy { initial_delay: Duration::ZERO, delay: Duration::ZERO, ..Default::default() };
    with(Flow::Window { prefetch, extension }, Redelivery::Here(policy))
}

fn arrive(subscription: &mut Subscription, numbers: std::ops::RangeInclusive<i64>) {
    for number in numbers {
        subscription.arrive(id(number), Message::text(number.to_string()), 0);
    }
}

/// What is delivered now: number, text, count, epoch.
fn delivered(subscription: &mut Subscription) -> Vec<(u64, String, u32, u32)> {
    std::iter::from_fn(|| subscription.next(Instant::now()))
        .map(|dispatch| {
            let text = dispatch.message.as_text().unwrap().unwrap_or_default().to_owned();
            (dispatch.number, text, dispatch.delivery_count, dispatch.epoch)
        })
        .collect()
}

fn failure() -> Cause {
    Cause::failure("no")
}

#[test]
fn what_is_settled_out_of_order_is_named_in_ranges_that_the_peer_has() {
    let mut subscription = windowed(10, None);
    let mut list = PeersList((1..=10).collect());
    arrive(&mut subscription, 1..=10);
    assert_eq!(delivered(&mut subscription).len(), 10);
    for (first, last) in [(3, 3), (5, 6), (1, 7), (2, 2), (8, 10)] {
        for run in subscription.settle(first, last) {
            list.settle(&run);
        }
    }
    assert!(list.0.is_empty(), "{:?}", list.0);
    assert!(subscription.settle(1, 10).is_empty(), "what is settled is passed over");
    assert!(subscription.settle(7, 3).is_empty() && subscription.settle(0, u64::MAX).is_empty());
}

#[test]
fn what_is_given_back_comes_first_and_is_named_where_it_was() {
    let mut subscription = windowed(10, None);
    let mut list = PeersList((1..=6).collect());
    arrive(&mut subscription, 1..=6);
    delivered(&mut subscription);
    subscription.hand_over(4);
    for run in subscription.settle(2, 2) {
        list.settle(&run);
    }
    let given_back = subscription.give_back(1, 3, None, &failure(), Instant::now());
    assert_eq!(given_back.retained.iter().map(|run| run.count).sum::<usize>(), 2);
    assert!(given_back.exhausted.is_empty() && given_back.returned.is_none());
    let again = delivered(&mut subscription);
    let texts: Vec<_> =
        again.iter().map(|(number, text, count, epoch)| (*number, &**text, *count, *epoch)).collect();
    assert_eq!(texts, [(7, "1", 2, 1), (8, "3", 2, 1), (9, "5", 1, 1), (10, "6", 1, 1)]);
    // The fourth is in the application's hands all the while.
    for run in subscription.settle(4, 10) {
        list.settle(&run);
    }
    assert!(list.0.is_empty(), "{:?}", list.0);
}

#[test]
fn what_fails_too_often_is_named_to_be_condemned_and_is_gone() {
    let policy = RedeliveryPolicy {
        maximum_redeliveries: Some(1),
        initial_delay: Duration::ZERO,
        ..RedeliveryPolicy::default()
    };
    let mut subscription = with(Flow::Window { prefetch: 5, extension: None }, Redelivery::Here(policy));
    arrive(&mut subscription, 1..=2);
    delivered(&mut subscription);
    assert!(subscription.give_back(1, 1, None, &failure(), Instant::now()).exhausted.is_empty());
    assert_eq!(delivered(&mut subscription).len(), 2);
    let given_back = subscription.give_back(3, 3, None, &failure(), Instant::now());
    assert_eq!(given_back.exhausted, [Run { first: id(1), last: id(1), count: 1 }]);
    assert_eq!(delivered(&mut subscription), [(5, "2".to_owned(), 1, 2)]);
    assert_eq!(subscription.last_delivered(), -1);
}

#[test]
fn a_delay_beyond_all_that_can_be_counted_is_never() {
    let mut subscription = windowed(5, None);
    arrive(&mut subscription, 1..=1);
    delivered(&mut subscription);
    let now = Instant::now();
    let given_back = subscription.give_back(1, 1, Some(Duration::MAX), &failure(), now);
    assert!(given_back.due.iter().all(|due| *due > now + Duration::from_secs(1_000_000)));
    assert!(delivered(&mut subscription).is_empty());
    assert!(subscription.is_held_up());
}

#[test]
fn the_window_is_widened_by_what_is_in_hand_up_to_its_bound() {
    let mut unbounded = windowed(4, None);
    arrive(&mut unbounded, 1..=4);
    delivered(&mut unbounded);
    unbounded.hand_over(1);
    assert_eq!(unbounded.widen(), None);
    unbounded.hand_over(2);
    assert_eq!(unbounded.widen(), Some((id(2), 2)));
    assert_eq!(unbounded.widen(), None);
    let mut bounded = windowed(4, Some(2));
    arrive(&mut bounded, 1..=4);
    delivered(&mut bounded);
    bounded.hand_over(4);
    assert_eq!(bounded.widen(), Some((id(4), 2)));
    // The peer narrows it by what is settled, whatever is still in hand.
    bounded.settle(1, 2);
    assert_eq!(bounded.widen(), Some((id(4), 2)));
    bounded.settle(3, 4);
    assert_eq!(bounded.widen(), None);
}

#[test]
fn what_a_transaction_acknowledged_is_as_it_was_when_that_fails() {
    let mut subscription = windowed(5, None);
    let mut list = PeersList((1..=3).collect());
    arrive(&mut subscription, 1..=3);
    delivered(&mut subscription);
    let (_, arrivals) = subscription.settle_in_transaction(1, 2);
    // Until the end of the transaction the peer has them, between others.
    assert!(subscription.settle(1, 2).is_empty());
    subscription.rolled_back(&arrivals);
    subscription.close();
    assert!(!subscription.is_done());
    for run in subscription.settle(1, 3) {
        list.settle(&run);
    }
    assert_eq!(list.0, [3], "it was not handed over before the close");
    assert!(subscription.is_done());
}

#[test]
fn what_expires_on_its_way_says_nothing_of_those_before_it() {
    let flow = Flow::AsGranted { drains: VecDeque::new(), is_browser: false };
    let mut subscription = with(flow, Redelivery::Peer);
    arrive(&mut subscription, 1..=4);
    delivered(&mut subscription);
    assert_eq!(subscription.pass_over(3, 3), [Run { first: id(3), last: id(3), count: 1 }]);
    assert_eq!(subscription.hand_over(2), 2, "the peer was not told of them, and would take them back");
    subscription.settle(1, 2);
    subscription.close();
    assert!(subscription.is_done());
}

#[test]
fn a_close_names_the_last_that_was_handed_over_and_goes_back() {
    let mut subscription = windowed(5, None);
    arrive(&mut subscription, 1..=4);
    delivered(&mut subscription);
    assert_eq!(subscription.last_delivered(), -1);
    subscription.hand_over(3);
    subscription.settle(3, 3);
    assert_eq!(subscription.last_delivered(), 102);
    subscription.close();
    assert!(!subscription.is_done());
    subscription.give_back(1, 2, None, &failure(), Instant::now());
    assert!(subscription.is_done());
    assert_eq!(subscription.last_delivered(), 102);
    assert!(delivered(&mut subscription).is_empty());
}

#[test]
fn to_a_peer_that_redelivers_each_word_that_something_goes_back_counts_once() {
    let flow = Flow::AsGranted { drains: VecDeque::new(), is_browser: false };
    let mut subscription = with(flow, Redelivery::Peer);
    arrive(&mut subscription, 1..=4);
    delivered(&mut subscription);
    subscription.settle(2, 2);
    let given_back = subscription.give_back(1, 3, None, &failure(), Instant::now());
    assert_eq!(given_back.returned, Some(Run { first: id(1), last: id(3), count: 2 }));
    assert!(subscription.is_outdated(0) && !subscription.is_outdated(1));
    assert!(delivered(&mut subscription).is_empty(), "the fourth comes again from there");
    arrive(&mut subscription, 4..=4);
    assert_eq!(delivered(&mut subscription), [(5, "4".to_owned(), 1, 1)]);
    // With nothing to be said the peer counts nothing, and what was not seen is delivered again from here.
    assert_eq!(subscription.give_back(1, 3, None, &failure(), Instant::now()).returned, None);
    assert!(!subscription.is_outdated(1));
    assert_eq!(delivered(&mut subscription), [(6, "4".to_owned(), 1, 2)]);
}

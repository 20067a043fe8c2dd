//! What the provider has for a peer: from its sink into the outbox, and from there onto the wire.
//!
//! The sink only notes a delivery and puts it into the outbox. What it is on the wire is made by the task that writes, as
//! that takes time and may fail.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use corriere_core::provider::{DeliverySink, Dispatch, Event, ProviderError};
use corriere_core::{Destination, MessageId, SubscriptionId};
use tokio::sync::mpsc::UnboundedSender;

use super::advisories::{Advisory, Watchers};
use super::durable::name_of;
use super::ledger::Ledger;
use super::parking::Unwritten;
use super::pulls::{Due, Grants, Pulls};
use super::unwritable::Unwritable;
use super::windows::prefetch;
use crate::codec::Structure;
use crate::codec::conversion::ConversionError;
use crate::codec::structures as wire;
use crate::link::Outbox;

/// Something to be written.
#[derive(Debug)]
pub(super) enum Outgoing {
    /// As it is.
    Word(Structure),
    /// An answer, of which only so many may wait.
    Answer(Structure),
    /// A message for a consumer.
    Delivery(Delivery),
    /// Word of a temporary destination.
    Advisory(Advisory),
}

impl Outgoing {
    /// Whether only so many may wait to be written, as nothing else bounds them.
    pub(super) fn is_counted(&self) -> bool {
        match self {
            Self::Word(_) => false,
            Self::Answer(_) | Self::Advisory(_) => true,
            Self::Delivery(delivery) => delivery.is_pulled,
        }
    }
}

/// A message for a consumer.
#[derive(Debug)]
pub(super) struct Delivery {
    consumer: wire::ConsumerId,
    sequence: i64,
    /// Whether its consumer has no window, which would bound how many there are.
    is_pulled: bool,
    pub(super) dispatch: Dispatch,
}

/// What the provider, or the task that writes, tells the connection.
#[derive(Debug)]
pub(super) enum Told {
    /// The provider has ended the connection.
    Lost(ProviderError),
    /// A message cannot be written for this peer.
    Undeliverable { subscription: SubscriptionId, number: u64, message_id: Option<MessageId>, reason: String },
    /// There is something to be done for a consumer without a window, as what came for it is written.
    IsDue { subscription: SubscriptionId },
    /// The peer asked for word of temporary destinations and does not read it.
    DoesNotRead,
    /// A consumer stands still by its own doing.
    IsSlow(Slow),
}

/// A consumer that acknowledges nothing.
#[derive(Debug)]
pub(super) struct Slow {
    pub(super) consumer: wire::ConsumerId,
    pub(super) destination: Destination,
    pub(super) unacknowledged: u64,
}

/// A consumer of the peer, as the sink knows it.
#[derive(Debug)]
pub(super) struct Consumer {
    pub(super) id: wire::ConsumerId,
    pub(super) destination: Option<wire::Destination>,
    pub(super) is_browser: bool,
    pub(super) is_durable: bool,
    /// Whether it has a window, and so only so many messages at once.
    pub(super) has_window: bool,
    /// As what it was opened, if it is of another make and pulls.
    pub(super) pulling: Option<Box<wire::ConsumerInfo>>,
    pub(super) ledger: Ledger,
    pub(super) pulls: Pulls,
    pub(super) grants: Grants,
    pub(super) unwritable: Unwritable,
    /// What came before the peer was answered that the consumer is there.
    early: Option<Vec<Outgoing>>,
}

impl Consumer {
    /// The consumer that a peer opens.
    pub(super) fn new(info: &wire::ConsumerInfo, is_corriere: bool) -> Self {
        let has_window = prefetch(info.prefetch_size).is_some();
        // A browser of a peer of Corriere goes by what it pulls, and acknowledges nothing.
        let acknowledges = !(info.browser && is_corriere && !has_window);
        let pulls = !(info.browser || is_corriere || has_window);
        Self {
            id: info.consumer_id.clone(),
            destination: info.destination.clone(),
            is_browser: info.browser,
            is_durable: name_of(info).is_some(),
            has_window,
            pulling: pulls.then(|| Box::new(info.clone())),
            ledger: if acknowledges { Ledger::default() } else { Ledger::of_nothing() },
            pulls: Pulls::default(),
            grants: Grants::default(),
            unwritable: Unwritable::default(),
            early: Some(Vec::new()),
        }
    }
}

/// Where the provider's deliveries for one peer go.
#[derive(Debug)]
pub(super) struct Deliveries {
    pub(super) outbox: Outbox<Outgoing>,
    pub(super) unwritten: Unwritten,
    state: Mutex<State>,
    told: UnboundedSender<Told>,
    /// How many messages may be on their way to consumers without a window.
    pulled: usize,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) consumers: BTreeMap<SubscriptionId, Consumer>,
    pub(super) watchers: Watchers,
    /// Counts the deliveries of the connection, as the broker's number of each.
    last_sequence: i64,
    /// Whether consumers are sent nothing more.
    is_closed: bool,
}

impl State {
    /// How many messages may be on their way to each consumer without a window, of so many for all consumers.
    pub(super) fn slice(&self, pulled: usize) -> u32 {
        u32::try_from(pulled / self.consumers.len().max(1)).unwrap_or(u32::MAX).max(1)
    }
}

impl Deliveries {
    pub(super) fn new(told: UnboundedSender<Told>, pulled: usize) -> Self {
        let (outbox, unwritten) = (Outbox::default(), Unwritten::default());
        Self { outbox, unwritten, state: Mutex::default(), told, pulled }
    }

    /// Takes no more messages for the peer, and says of no consumer that there are none. What the provider still has for it goes
    /// back as if it had never come.
    pub(super) fn hold_back(&self) {
        self.lock().is_closed = true;
    }

    /// Takes nothing more for the peer; what is in the outbox is still written. What the provider still has for it goes
    /// back as if it had never come.
    pub(super) fn close(&self) {
        self.hold_back();
        self.outbox.close();
    }

    /// What is to be done for a consumer without a window.
    pub(super) fn next_due(&self, subscription: SubscriptionId) -> Option<Due> {
        let mut state = self.lock();
        let slice = state.slice(self.pulled);
        state.consumers.get_mut(&subscription)?.grants.next(slice)
    }

    /// Takes note that a message is written.
    pub(super) fn written(&self, delivery: &Delivery) {
        if !delivery.is_pulled {
            return;
        }
        let subscription = delivery.dispatch.subscription;
        let mut state = self.lock();
        let slice = state.slice(self.pulled);
        let consumer = state.consumers.get_mut(&subscription);
        if consumer.is_some_and(|consumer| consumer.grants.written(slice)) {
            self.tell(Told::IsDue { subscription });
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing unwinds while this is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes something that the peer does not wait for.
    pub(super) fn word(&self, structure: impl Into<Structure>) {
        self.write(Outgoing::Word(structure.into()));
    }

    /// Writes an answer.
    pub(super) fn answer(&self, structure: impl Into<Structure>) {
        self.write(Outgoing::Answer(structure.into()));
    }

    fn write(&self, outgoing: Outgoing) {
        if outgoing.is_counted() {
            self.unwritten.add();
        }
        self.outbox.push(outgoing);
    }

    /// Writes what came for a consumer before the peer was answered that it is there.
    pub(super) fn open(&self, subscription: SubscriptionId) {
        let mut state = self.lock();
        if let Some(consumer) = state.consumers.get_mut(&subscription) {
            let early = consumer.early.take();
            // Under the lock, so that nothing that comes now overtakes it.
            early.into_iter().flatten().for_each(|outgoing| self.write(outgoing));
        }
    }

    /// Says to a consumer that there is nothing, or nothing more.
    pub(super) fn say_nothing_more(&self, subscription: SubscriptionId) {
        let mut state = self.lock();
        if state.is_closed {
            return;
        }
        if let Some(consumer) = state.consumers.get_mut(&subscription) {
            let consumer_id = consumer.id.clone();
            let nothing = wire::MessageDispatch { consumer_id, ..wire::MessageDispatch::default() };
            self.put(consumer, Outgoing::Answer(nothing.into()));
        }
    }

    /// Writes word of temporary destinations.
    pub(super) fn advise(&self, advisories: Vec<Advisory>) {
        advisories.into_iter().for_each(|advisory| self.write(Outgoing::Advisory(advisory)));
    }

    fn put(&self, consumer: &mut Consumer, outgoing: Outgoing) {
        match &mut consumer.early {
            Some(early) => early.push(outgoing),
            None => self.write(outgoing),
        }
    }

    fn tell(&self, told: Told) {
        // Nobody listens once the connection has ended.
        let _ = self.told.send(told);
    }

    /// Says that a message cannot be written.
    pub(super) fn undeliverable(&self, dispatch: &Dispatch, reason: String) {
        let (subscription, number) = (dispatch.subscription, dispatch.number);
        let message_id = dispatch.message.headers().message_id.clone();
        self.tell(Told::Undeliverable { subscription, number, message_id, reason });
    }
}

impl DeliverySink for Deliveries {
    fn deliver(&self, batch: Vec<Dispatch>) {
        let mut state = self.lock();
        let state = &mut *state;
        if state.is_closed {
            return;
        }
        for dispatch in batch {
            // What still comes for a consumer that was removed goes back with it.
            let Some(consumer) = state.consumers.get_mut(&dispatch.subscription) else { continue };
            state.last_sequence += 1;
            consumer.ledger.note(&dispatch, state.last_sequence);
            consumer.pulls.deliver();
            if !consumer.has_window {
                consumer.grants.deliver();
            }
            let delivery = Delivery {
                consumer: consumer.id.clone(),
                sequence: state.last_sequence,
                is_pulled: !consumer.has_window,
                dispatch,
            };
            self.put(consumer, Outgoing::Delivery(delivery));
        }
    }

    fn notify(&self, event: Event) {
        match event {
            Event::Lost { error } => self.tell(Told::Lost(error)),
            Event::SubscriptionEnded { subscription, error } => {
                let Some(consumer) = self.lock().consumers.remove(&subscription) else { return };
                tracing::warn!(consumer = %consumer.id, %error, "the broker has ended a consumer of a peer");
                let consumer_id = Some(consumer.id);
                self.word(wire::ConsumerControl { consumer_id, close: true, ..Default::default() });
            }
            Event::WindowChanged { subscription, prefetch } => {
                let state = self.lock();
                let Some(consumer) = state.consumers.get(&subscription) else { return };
                self.word(wire::ConsumerControl {
                    destination: consumer.destination.clone(),
                    consumer_id: Some(consumer.id.clone()),
                    prefetch: i32::try_from(prefetch).unwrap_or(i32::MAX),
                    ..Default::default()
                });
            }
            Event::SlowConsumer { subscription, destination, unacknowledged } => {
                let consumer = self.lock().consumers.get(&subscription).map(|consumer| consumer.id.clone());
                if let Some(consumer) = consumer {
                    self.tell(Told::IsSlow(Slow { consumer, destination, unacknowledged }));
                }
            }
            Event::BrowseEnded { subscription } => self.say_nothing_more(subscription),
            Event::DestinationChanged { destination, exists } => {
                let mut state = self.lock();
                self.advise(state.watchers.change(&destination, exists));
                drop(state);
                if self.unwritten.is_beyond_all() {
                    self.tell(Told::DoesNotRead);
                }
            }
            _ => {}
        }
    }
}

impl Delivery {
    /// The delivery on the wire. To a peer of Corriere its epoch is told.
    pub(super) fn to_structure(&self, is_corriere: bool) -> Result<Structure, ConversionError> {
        let Dispatch { message, delivery_count, epoch, .. } = &self.dispatch;
        let failed = i32::try_from(delivery_count.saturating_sub(1)).unwrap_or(i32::MAX);
        let mut message = wire::Message::from_core(message)?;
        message.redelivery_counter = failed;
        if let Some(id) = &mut message.message_id {
            id.broker_sequence_id = self.sequence;
        }
        let dispatch = wire::MessageDispatch {
            command_id: if is_corriere { epoch.cast_signed() } else { 0 },
            consumer_id: self.consumer.clone(),
            destination: message.destination.clone(),
            message: Some(Box::new(message)),
            redelivery_counter: failed,
            ..wire::MessageDispatch::default()
        };
        Ok(dispatch.into())
    }
}

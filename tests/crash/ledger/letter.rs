//! What is known of one message.

use std::sync::Arc;

use corriere_broker::machine::Ticket;
use corriere_core::{Destination, Message, Timestamp};

use super::tally::Spots;
use super::{Certainty, Heard, Name, Outcome};

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// It never came, or not yet.
    Never,
    /// On the queue that it was sent to.
    Queue,
    /// With a transaction that is prepared.
    Prepared,
    /// With the dead letters of its queue.
    Dead,
    /// Settled for good.
    Gone,
}

/// Something that was asked for a message, or seen of it.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Sent {
        ticket: Ticket,
    },
    SentIn(Name),
    /// A consumer got it there.
    Seen(Spot),
    Settled {
        ticket: Ticket,
        stamp: u64,
    },
    SettledIn(Name),
    /// Sent to the dead letters by its consumer.
    Condemned {
        ticket: Ticket,
    },
}

/// A message with what happened to it since the process began.
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    pub(crate) message: Arc<Message>,
    /// Where it was sent to.
    pub(crate) queue: Destination,
    /// Where it goes when it dies.
    pub(crate) dead: Destination,
    /// Where it was when the process began.
    pub(super) base: Spot,
    pub(super) events: Vec<Event>,
    pub(super) counts: Deliveries,
    pub(super) dead_counts: Deliveries,
    /// Why it died, as it was read.
    pub(super) cause: Option<Arc<str>>,
}

/// How often a message was handed to the application in one place.
#[derive(Clone, Debug, Default)]
pub(super) struct Deliveries {
    pub(super) handed_over: u32,
    /// Failures that were recorded in a step, with the number of that step.
    pub(super) recorded: Vec<(u64, u32)>,
    /// Failures that are known to be counted since the process began.
    pub(super) floor: u32,
}

impl Deliveries {
    /// So many failures are counted for sure.
    pub(super) fn least(&self, survives: impl Fn(u64) -> bool) -> u32 {
        let recorded = self.recorded.iter().filter(|(stamp, _)| survives(*stamp)).map(|(_, failed)| *failed);
        recorded.max().unwrap_or_default().max(self.floor)
    }
}

impl Letter {
    pub(super) fn new(message: Arc<Message>, queue: Destination, dead: Destination) -> Self {
        Self {
            message,
            queue,
            dead,
            base: Spot::Never,
            events: Vec::new(),
            counts: Deliveries::default(),
            dead_counts: Deliveries::default(),
            cause: None,
        }
    }

    pub(crate) fn is_persistent(&self) -> bool {
        self.message.headers().is_persistent()
    }

    pub(super) fn deliveries(&mut self, spot: Spot) -> &mut Deliveries {
        if spot == Spot::Dead { &mut self.dead_counts } else { &mut self.counts }
    }

    /// Where it may be, if each transaction ended as `outcome` says.
    pub(super) fn spots(
        &self,
        now: Timestamp,
        patience: Option<u32>,
        heard: &Heard,
        certainty: &Certainty,
        outcome: impl Fn(&Name) -> Outcome,
    ) -> Spots {
        let mut spots = Spots::only(self.base);
        for event in &self.events {
            spots = match event {
                Event::Sent { ticket } => spots.moved(Spot::Never, Spot::Queue, heard.certainty_of(*ticket)),
                Event::SentIn(name) => Spots::only(match outcome(name) {
                    Outcome::Applied => Spot::Queue,
                    Outcome::Prepared => Spot::Prepared,
                    Outcome::Nothing => Spot::Never,
                }),
                Event::Seen(spot) => Spots::only(*spot),
                Event::Settled { ticket, stamp } => {
                    let is_certain = certainty.is_kept(*stamp)
                        || (certainty.written_is_kept() && heard.is_confirmed(*ticket));
                    let certain = if is_certain { Some(true) } else { None };
                    spots.moved(Spot::Queue, Spot::Gone, certain).moved(Spot::Dead, Spot::Gone, certain)
                }
                Event::SettledIn(name) if outcome(name) == Outcome::Applied => {
                    spots.moved(Spot::Queue, Spot::Gone, Some(true)).moved(Spot::Dead, Spot::Gone, Some(true))
                }
                Event::SettledIn(_) => spots,
                Event::Condemned { ticket } => {
                    let certain = if heard.is_confirmed(*ticket) { Some(true) } else { None };
                    spots.moved(Spot::Queue, Spot::Dead, certain)
                }
            };
        }
        if self.may_have_died(now, patience) { spots.moved(Spot::Queue, Spot::Dead, None) } else { spots }
    }

    /// Whether the broker may have moved it to the dead letters by itself.
    fn may_have_died(&self, now: Timestamp, patience: Option<u32>) -> bool {
        self.message.headers().is_expired(now)
            || patience.is_some_and(|patience| self.counts.handed_over > patience)
    }

    /// Those that it was sent or settled in.
    pub(super) fn transactions(&self) -> impl Iterator<Item = &Name> {
        self.events.iter().filter_map(|event| match event {
            Event::SentIn(name) | Event::SettledIn(name) => Some(name),
            _ => None,
        })
    }
}

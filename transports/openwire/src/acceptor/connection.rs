//! One connection of a peer, from the first byte to the last.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use corriere_core::provider::{Command, Confirmation, ProviderConnection, ProviderError, Receipt};
use corriere_core::{ProducerId, SessionId, SubscriptionId};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::accepting::{FIRST_FRAMES, Shared, told_to_stop};
use super::confirmations::{Answer, Confirmed, Then, Unconfirmed};
use super::deliveries::{Deliveries, Told};
use super::ending::{Ending, greet_in_vain};
use super::exceptions::Refusal;
use super::lost::Lost;
use super::parking::{Held, UnderWay};
use super::pulls::PullTimers;
use super::registry::Registration;
use super::transactions::Transactions;
use super::writing::Writing;
use crate::codec::structures as wire;
use crate::link::{CommandReader, CommandWriter, LinkError, handshake};
use crate::redelivery;

/// What each command that is not answered is taken to hold at least.
const LEAST_HELD: usize = 512;

/// How many commands are taken before confirmations are looked at.
const COMMANDS_IN_A_ROW: usize = 64;

/// A producer of the peer.
#[derive(Debug)]
pub(super) struct Producer {
    pub(super) number: ProducerId,
    /// Whether it waits for word of what was taken in.
    pub(super) has_window: bool,
}

/// The provider's side, once the peer has introduced itself.
#[derive(Debug)]
pub(super) struct Introduced {
    /// Dropped before the place is free.
    pub(super) provider: Arc<dyn ProviderConnection>,
    pub(super) id: Arc<str>,
    _registration: Registration,
}

impl Introduced {
    pub(super) fn new(
        provider: Arc<dyn ProviderConnection>,
        id: Arc<str>,
        registration: Registration,
    ) -> Self {
        Self { provider, id, _registration: registration }
    }
}

/// A peer with whom the wire format is agreed on, and what it has open.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) shared: Arc<Shared>,
    pub(super) peer: SocketAddr,
    /// Whether the peer speaks as [`redelivery`] says.
    pub(super) is_corriere: bool,
    pub(super) deliveries: Arc<Deliveries>,
    pub(super) introduced: Option<Introduced>,
    /// What the peer has introduced itself as, if it has a name of its own.
    pub(super) client_id: Option<Arc<str>>,
    /// Whether the peer has closed the connection in OpenWire's words.
    pub(super) is_closed: bool,
    pub(super) sessions: BTreeMap<i64, SessionId>,
    /// By session and number, as the peer counts them.
    pub(super) producers: HashMap<(i64, i64), Producer>,
    /// Those that the provider has ended stay until the peer, which was told, closes them or opens them anew. The ledgers of
    /// the others are with the deliveries.
    pub(super) consumers: HashMap<(i64, i64), SubscriptionId>,
    pub(super) transactions: Transactions,
    /// Whether the peer had another connection before and goes on with what it did there.
    pub(super) has_failed_over: bool,
    pub(super) pull_timers: PullTimers,
    /// How much a message may grow when it is read.
    pub(super) maximum_frame_size: usize,
    pub(super) oust: Arc<Notify>,
    pub(super) unconfirmed: FuturesUnordered<Unconfirmed>,
    pub(super) under_way: UnderWay,
    /// How many commands there are of [`Then::outlives_the_connection`].
    pub(super) awaited: usize,
    /// The answer to the end of the connection, where that waits for them.
    pub(super) closing: Option<Answer>,
    /// Whether the peer hears nothing any more.
    pub(super) is_unheard: bool,
    pub(super) lost: Lost,
    /// How many messages went back to the provider when the connection was closed.
    pub(super) returned: u64,
    /// The commands of which it was said in the log that one was refused.
    pub(super) said_refused: BTreeSet<&'static str>,
    last_number: u64,
}

/// Serves a peer until it or the acceptor ends.
pub(super) async fn serve(shared: Arc<Shared>, stream: TcpStream, peer: SocketAddr) {
    let mut stopping = shared.stopping.subscribe();
    // Whether it helps is for the peer to feel; nothing depends on it.
    let _ = stream.set_nodelay(shared.address.preferences.tcp_no_delay);
    let (read, write) = stream.into_split();
    let reader = CommandReader::new(read, wire::WireFormatInfo::MAXIMUM_FRAME_SIZE);
    let mut reader = reader.sharing(shared.frame_room.clone());
    let mut writer = CommandWriter::new(write);
    let agreed = tokio::select! {
        agreed = handshake(&mut reader, &mut writer, &shared.address.preferences) => agreed,
        () = told_to_stop(&mut stopping) => return,
    };
    let agreement = match agreed {
        Ok(agreement) => agreement,
        Err(error) => return greet_in_vain(&shared, reader, writer, peer, &error).await,
    };
    tracing::debug!(%peer, version = %agreement.format.version, "a peer speaks OpenWire");
    let (sender, told) = unbounded_channel();
    reader.limit(FIRST_FRAMES);
    let deliveries = Arc::new(Deliveries::new(sender, shared.options.bounds.pulled));
    let is_corriere = redelivery::is_spoken_by(&agreement.properties);
    deliveries.word(shared.introduction());
    let writing = Writing {
        shared: Arc::clone(&shared),
        deliveries: Arc::clone(&deliveries),
        is_corriere,
        keep_alive: agreement.maximum_inactivity.map(|silence| silence / 3),
    };
    let mut writer_task = JoinSet::new();
    writer_task.spawn(writing.run(writer));
    let mut connection = Connection {
        shared,
        peer,
        is_corriere,
        deliveries,
        introduced: None,
        client_id: None,
        is_closed: false,
        sessions: BTreeMap::new(),
        producers: HashMap::new(),
        consumers: HashMap::new(),
        transactions: Transactions::default(),
        pull_timers: PullTimers::default(),
        maximum_frame_size: agreement.format.maximum_frame_size,
        oust: Arc::new(Notify::new()),
        unconfirmed: FuturesUnordered::new(),
        under_way: UnderWay::default(),
        awaited: 0,
        closing: None,
        is_unheard: false,
        lost: Lost::default(),
        returned: 0,
        said_refused: BTreeSet::new(),
        has_failed_over: false,
        last_number: 0,
    };
    let ending = connection.run(&mut reader, told, &mut writer_task, &mut stopping).await;
    connection.end(ending, reader, writer_task, stopping).await;
}

impl Shared {
    /// What a peer is told of the broker once the wire format is agreed on.
    fn introduction(&self) -> wire::BrokerInfo {
        wire::BrokerInfo {
            broker_id: Some(self.advisor.broker_id.clone()),
            broker_url: Some(Arc::clone(&self.advisor.broker_url)),
            broker_name: Some(Arc::clone(&self.advisor.broker_name)),
            ..wire::BrokerInfo::default()
        }
    }
}

impl Connection {
    async fn run(
        &mut self,
        reader: &mut CommandReader<OwnedReadHalf>,
        mut told: UnboundedReceiver<Told>,
        writer: &mut JoinSet<Result<(), LinkError>>,
        stopping: &mut watch::Receiver<bool>,
    ) -> Ending {
        let oust = Arc::clone(&self.oust);
        let bounds = self.shared.options.bounds;
        loop {
            let has_room = self.under_way.has_room(bounds) && self.deliveries.unwritten.has_room(bounds);
            // Half of a large frame would keep others from theirs.
            let may_read = has_room || reader.is_within_a_large_frame();
            let step = tokio::select! {
                biased;
                () = told_to_stop(stopping) => Err(Ending::Stopping),
                () = oust.notified() => Err(Ending::Ousted),
                Some(told) = told.recv() => self.told(told),
                Some(confirmed) = self.unconfirmed.next(), if !self.unconfirmed.is_empty() => {
                    self.confirmed(confirmed)
                }
                Some(written) = writer.join_next(), if !writer.is_empty() => Err(Ending::of_writing(written)),
                () = self.deliveries.unwritten.changed(), if !has_room => Ok(()),
                Some(subscription) = self.pull_timers.next(), if !self.pull_timers.is_empty() => {
                    self.pull_is_over(subscription);
                    Ok(())
                }
                read = reader.next(), if may_read => match read {
                    Ok(structure) => self.commands(structure, reader).await,
                    Err(error) => Err(Ending::Broken(error)),
                },
            };
            if let Err(ending) = step {
                return ending;
            }
        }
    }

    /// Takes a command, and those that were read with it.
    async fn commands(
        &mut self,
        first: crate::Structure,
        reader: &mut CommandReader<OwnedReadHalf>,
    ) -> Result<(), Ending> {
        let bounds = self.shared.options.bounds;
        let mut next = Some(first);
        for _ in 0..COMMANDS_IN_A_ROW {
            let Some(structure) = next else { return Ok(()) };
            self.command(structure).await?;
            if self.introduced.is_some() {
                reader.limit(self.maximum_frame_size);
            }
            if !self.under_way.has_room(bounds) || !self.deliveries.unwritten.has_room(bounds) {
                return Ok(());
            }
            next = reader.next_here().map_err(Ending::Broken)?;
        }
        match next {
            Some(structure) => self.command(structure).await,
            None => Ok(()),
        }
    }

    fn told(&mut self, told: Told) -> Result<(), Ending> {
        match told {
            Told::Lost(error) => Err(Ending::Refused(error.into())),
            Told::IsDue { subscription } => {
                self.hand_on(subscription);
                Ok(())
            }
            Told::DoesNotRead => Err(Ending::Refused(Refusal::illegal_state(
                "the peer asked for word of temporary destinations and does not read it",
            ))),
            Told::IsSlow(slow) => {
                self.is_slow(&slow);
                Ok(())
            }
            Told::Undeliverable { subscription, number, message_id, reason } => {
                self.undeliverable(subscription, number, message_id.as_ref(), &reason);
                Ok(())
            }
        }
    }

    /// The provider's side.
    pub(super) fn provider(&self) -> Result<Arc<dyn ProviderConnection>, Refusal> {
        match &self.introduced {
            _ if self.is_closed => Err(Refusal::illegal_state("the connection is closed")),
            Some(introduced) => Ok(Arc::clone(&introduced.provider)),
            None => Err(Refusal::illegal_state(
                "the connection was not introduced; expected ConnectionInfo before anything else",
            )),
        }
    }

    /// The peer's client id, for the log.
    pub(super) fn client_id(&self) -> &str {
        self.client_id.as_deref().unwrap_or("none")
    }

    /// A number that nothing else on this connection has.
    pub(super) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Submits a command, and says what is to be done when it is confirmed.
    pub(super) fn submit(&mut self, command: Command, then: Then) -> Result<(), Refusal> {
        let receipt = self.provider()?.submit(command);
        self.when_confirmed(receipt, then, Held::Unanswered(LEAST_HELD));
        Ok(())
    }

    /// The same for a command that was submitted already.
    pub(super) fn when_opened(&mut self, receipt: Receipt, then: Then) {
        self.when_confirmed(receipt, then, Held::Unanswered(LEAST_HELD));
    }

    pub(super) fn when_confirmed(&mut self, receipt: Receipt, then: Then, held: Held) {
        self.under_way.hold(held);
        self.awaited += usize::from(then.outlives_the_connection());
        self.unconfirmed.push(Unconfirmed::new(receipt, then, held));
    }

    pub(super) fn confirmed(&mut self, confirmed: Confirmed) -> Result<(), Ending> {
        let Confirmed { then, held, outcome } = confirmed;
        let was_parked_full = self.under_way.is_parked_full(self.shared.options.bounds);
        self.under_way.release(held);
        self.awaited -= usize::from(then.outlives_the_connection());
        let done = self.confirmed_as(then, held, outcome, was_parked_full);
        if self.awaited == 0 {
            self.finish_closing();
        }
        done
    }

    fn confirmed_as(
        &mut self,
        then: Then,
        held: Held,
        outcome: Result<Confirmation, ProviderError>,
        was_parked_full: bool,
    ) -> Result<(), Ending> {
        let outcome = outcome.map(drop);
        match then {
            Then::Answer(answer) => self.settle(answer, outcome),
            Then::ProducerOpened { key, answer } => self.producer_opened(key, answer, outcome),
            Then::Opened { subscription, consumer, destination, answer } => {
                if let Err(error) = &outcome {
                    self.say_consumer_refused(&consumer, &destination, None, &error.clone().into());
                }
                self.opened(subscription, &consumer, answer, outcome);
            }
            Then::Watching { consumer, wanted, answer } => self.watching(&consumer, wanted, answer, outcome),
            Then::Sent { answer, acknowledges, sent } => {
                if let Err(error) = &outcome
                    && self.is_unheard
                {
                    if !answer.is_required {
                        self.lost.note(&sent, error);
                    }
                    return Ok(());
                }
                if let Err(error) = &outcome
                    && error.lacks_room()
                    && was_parked_full
                    && matches!(held, Held::Parked(_))
                {
                    return Err(Ending::Refused(error.clone().into()));
                }
                if let Some(acknowledges) = acknowledges {
                    self.deliveries.answer(*acknowledges);
                }
                self.settle(answer, outcome);
            }
            Then::Ended { transaction, is_commit, spoilt, answer } => {
                self.transaction_ended(&transaction, is_commit, spoilt, answer, outcome);
            }
            Then::Drained { subscription } => self.drained(subscription),
            Then::Closed(answer) => {
                self.settle(answer, outcome);
                self.introduced = None;
            }
        }
        Ok(())
    }

    /// Answers a command with its outcome.
    pub(super) fn settle(&self, answer: Answer, outcome: Result<(), impl Into<Refusal>>) {
        match outcome {
            Ok(()) => self.done(answer),
            Err(refusal) => self.refuse(answer, refusal.into()),
        }
    }

    /// Answers that a command is done.
    pub(super) fn done(&self, answer: Answer) {
        if answer.is_required {
            let correlation_id = answer.command_id;
            self.deliveries.answer(wire::Response { correlation_id, ..wire::Response::default() });
        }
    }

    /// Says that a command is refused.
    pub(super) fn refuse(&self, answer: Answer, refusal: Refusal) {
        let exception = Some(refusal.into_throwable());
        if answer.is_required {
            let correlation_id = answer.command_id;
            self.deliveries.answer(wire::ExceptionResponse {
                correlation_id,
                exception,
                ..Default::default()
            });
        } else {
            let connection_id = self.connection_id();
            self.deliveries.answer(wire::ConnectionError { exception, connection_id, ..Default::default() });
        }
    }

    pub(super) fn connection_id(&self) -> Option<wire::ConnectionId> {
        self.introduced.as_ref().map(|introduced| wire::ConnectionId { value: Arc::clone(&introduced.id) })
    }
}

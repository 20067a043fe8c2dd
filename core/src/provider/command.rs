//! What a client asks of a provider.

use std::sync::Arc;
use std::time::Duration;

use super::{Ack, Cause, Mark};
use crate::destination::Destination;
use crate::id::{ProducerId, SessionId, SubscriptionId, TransactionId};
use crate::message::Message;
use crate::redelivery::RedeliveryOverrides;

/// A request of one connection. Each says what its [`Receipt`](super::Receipt) confirms.
#[derive(Debug)]
#[non_exhaustive]
pub enum Command {
    /// Opens a session; confirmed when it is known.
    OpenSession {
        /// Chosen by the client, new on its connection.
        session: SessionId,
        /// How its deliveries are acknowledged.
        mode: SessionMode,
    },
    /// Closes a session with all it opened; what it had not settled returns to its destination, counted if it was
    /// handed over. Confirmed when that is done.
    CloseSession {
        /// Which one.
        session: SessionId,
    },
    /// Opens a producer; confirmed when it is known.
    OpenProducer {
        /// Chosen by the client, new on its connection.
        producer: ProducerId,
        /// The session that it belongs to.
        session: SessionId,
        /// Its identity in the ids of its messages.
        identity: Arc<str>,
        /// Where it sends; `None` when each send says so.
        destination: Option<Destination>,
    },
    /// Closes a producer; what it sent stays sent.
    CloseProducer {
        /// Which one.
        producer: ProducerId,
    },
    /// Opens a subscription (a consumer). Confirmed after everything that was waiting for it, up to its credit, has
    /// been delivered.
    OpenSubscription(Box<Subscribe>),
    /// Closes a subscription. What was not handed over returns, uncounted; what was handed over and is not settled
    /// stays with the session, which may still settle it.
    CloseSubscription {
        /// Which one.
        subscription: SubscriptionId,
        /// The number of the last delivery that was handed to the application; 0 for none.
        last_handed_over: u64,
    },
    /// Sends a message. Outside a transaction confirmed when it is durable (a persistent one) or accepted (another);
    /// inside one when it is accepted. While memory is full it waits, up to `deadline`.
    Send(SendMessage),
    /// Says what became of deliveries; confirmed when that has taken effect.
    Acknowledge(Ack),
    /// Notes that a message is in the hands of the application, so that it counts if the process dies, and so that it
    /// widens the window. A client says so of each persistent message before the application has it, unless the same
    /// call acknowledges it; of others when it suits. One that puts acknowledgements off says so of what has a mark, of the
    /// oldest that the provider does not know to be settled, and of what is redelivered.
    HandedOver {
        /// Whose delivery.
        subscription: SubscriptionId,
        /// The number of the delivery; all before it were handed over too.
        number: u64,
        /// The delivery's own, where it has one and the client keeps it: with it the provider need look nothing up.
        mark: Option<Mark>,
    },
    /// Adds to the credit of a subscription with [`Credit::Explicit`].
    Grant {
        /// Whose credit.
        subscription: SubscriptionId,
        /// How many more messages it may be sent.
        credit: u32,
    },
    /// Takes back explicit credit; confirmed when all that can be delivered at this moment has been. With a window,
    /// whose credit stays, it is only that confirmation.
    Drain {
        /// Whose credit.
        subscription: SubscriptionId,
    },
    /// Changes the window of a subscription; for one with explicit credit it means nothing. What is under way beyond a smaller
    /// window stays with it. Confirmed when all that the window lets through at this moment has been delivered.
    ChangeWindow {
        /// Whose window.
        subscription: SubscriptionId,
        /// See [`Credit::Window`].
        prefetch: u32,
        /// See [`Credit::Window`].
        extension: Option<u32>,
    },
    /// Begins a transaction of this connection.
    Begin {
        /// Chosen by the client.
        transaction: TransactionId,
    },
    /// Ends the association of a distributed transaction with this connection.
    End {
        /// Which one.
        transaction: TransactionId,
    },
    /// First phase of a distributed commit; confirmed with the vote, once durable.
    Prepare {
        /// Which one.
        transaction: TransactionId,
    },
    /// Commits; confirmed when all of it is durable. Refused, and rolled back, when any part of it failed.
    Commit {
        /// Which one.
        transaction: TransactionId,
        /// Whether no prepare went before it.
        one_phase: bool,
    },
    /// Rolls back: sends vanish, acknowledgements are undone. The deliveries stay with their subscriptions, which give
    /// them back by [`AckKind::Redelivered`](super::AckKind::Redelivered).
    Rollback {
        /// Which one.
        transaction: TransactionId,
        /// Why, for deliveries that go back because their subscription is closed.
        cause: Option<Cause>,
    },
    /// Forgets a distributed transaction that was ended heuristically.
    Forget {
        /// Which one.
        transaction: TransactionId,
    },
    /// Lists the prepared transactions; confirmed with them.
    Recover,
    /// Opens a browser: it shows what is pending in a queue at this moment, in the order of delivery, in flight and waiting
    /// messages included, as far as each is still there when its turn comes. Confirmed when the snapshot is taken.
    ///
    /// Deliveries come by explicit credit ([`Command::Grant`]), are not to be acknowledged and change nothing;
    /// [`Event::BrowseEnded`](super::Event::BrowseEnded) follows the last one, with or without credit.
    /// [`Command::CloseSubscription`] ends a browser before or after that.
    Browse {
        /// Chosen by the client; deliveries come under it.
        subscription: SubscriptionId,
        /// The session that it belongs to.
        session: SessionId,
        /// The queue. One that is not there has nothing to show, and is not made.
        destination: Destination,
        /// Which messages.
        selector: Option<Arc<str>>,
    },
    /// Makes a temporary destination, from which only this connection consumes and which ends with it. Confirmed with it as
    /// [`Confirmation::Created`](super::Confirmation::Created), as a provider may give it another name.
    CreateTemporary {
        /// A temporary queue or topic of a name that the client chose: its connection's identity, a colon, and what makes it
        /// unique there.
        destination: Destination,
    },
    /// Removes a temporary destination of this connection with all that is in it. Refused while anybody consumes from it.
    DeleteTemporary {
        /// Which one.
        destination: Destination,
    },
    /// Removes a durable subscription that nobody uses, with all that waits for it. Refused while a consumer has it, and while a
    /// transaction has acknowledged messages of it that it has not committed (Jakarta Messaging 3.1, section 8.3.3).
    /// Confirmed when that is durable.
    Unsubscribe {
        /// Its name under the connection's client id.
        name: Arc<str>,
    },
    /// Asks for word of temporary destinations that come and go, of whichever connection
    /// ([`Event::DestinationChanged`](super::Event::DestinationChanged)). Those that are there are told of before this is confirmed.
    WatchEvents,
    /// Closes the connection with all it opened; confirmed when that is done.
    Close,
}

/// How the deliveries of a session are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionMode {
    /// Each one as it is received, or after its listener returned.
    Auto,
    /// By the application, all that the session received so far.
    Client,
    /// Lazily.
    DupsOk,
    /// With the session's transaction.
    Transacted,
    /// By the application, one by one.
    Individual,
}

/// A new subscription.
#[derive(Clone, Debug)]
pub struct Subscribe {
    /// Chosen by the client, new on its connection.
    pub subscription: SubscriptionId,
    /// The session that it belongs to.
    pub session: SessionId,
    /// What is consumed.
    pub destination: Destination,
    /// How much may be under way to it.
    pub credit: Credit,
    /// Whether neither the application nor its connection factory chose the prefetch of that window, so that a policy of the
    /// broker may say otherwise, which it then tells by [`Event::WindowChanged`](super::Event::WindowChanged).
    pub is_default_credit: bool,
    /// Which messages; `None` for all.
    pub selector: Option<Arc<str>>,
    /// Whether messages sent over the same connection are left out (topics).
    pub no_local: bool,
    /// The name of a durable subscription under the connection's client id. It is made when it is not there, and made anew,
    /// without what waited for it, when it is there for another topic, or with another selector or `no_local`
    /// (Jakarta Messaging 3.1, section 8.3.3). Refused without a client id, and while another consumer has it.
    pub durable_name: Option<Arc<str>>,
    /// Where it wants another redelivery policy than the broker's.
    pub redelivery: Option<RedeliveryOverrides>,
}

/// How much may be under way to a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credit {
    /// `prefetch` messages, and beside them as many as were handed over and are not settled, up to `extension`.
    Window {
        /// At least 1.
        prefetch: u32,
        /// Upper bound of what is handed over and widens the window; `None` for no bound.
        extension: Option<u32>,
    },
    /// What [`Command::Grant`] gives, whatever is not settled.
    Explicit,
}

/// A message on its way to a destination.
#[derive(Clone, Debug)]
pub struct SendMessage {
    /// Who sends.
    pub producer: ProducerId,
    /// Complete: destination, id, timestamp, expiration, priority and mode are set.
    pub message: Arc<Message>,
    /// The transaction that it takes effect with.
    pub transaction: Option<TransactionId>,
    /// How long it may wait for memory; `None` for the provider's own bound.
    pub deadline: Option<Duration>,
}

//! What happens in a random history. Every operation can be played in any state, so that a history stays one while it
//! shrinks: a number such as `Pick(7)` chooses among what is there at that moment.

use std::time::Duration;

use corriere_core::RedeliveryPolicy;
use corriere_core::provider::Credit;

/// Chooses one of the things that are there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick(pub(crate) u8);

/// A destination of the histories.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    A,
    B,
    Topic,
    /// The dead letters of queue A.
    DeadLetters,
    /// One of the latest temporary destinations, which may be gone.
    Temporary(Pick),
}

/// What is done with a browser.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Look {
    Grant(u8),
    Drain,
    /// As clients of other makes do: it means nothing.
    Acknowledge,
    HandOver,
    Close,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Word {
    Delivered,
    Standard,
    Individual,
    Poison,
    Undeliverable,
    Expired,
    Unmatched,
    Retained,
    Redelivered,
    RedeliveredAfter(u16),
    ConversionFailed,
    OutOfResources,
}

#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Connect,
    OpenSession {
        connection: Pick,
    },
    Subscribe {
        session: Pick,
        place: Place,
        credit: Credit,
        /// Whether its prefetch is left to the broker.
        is_default: bool,
        policy: Policy,
        no_local: bool,
    },
    /// As the consumer of one of two durable subscriptions of the session's client.
    SubscribeDurably {
        session: Pick,
        name: u8,
        is_to_other: bool,
        credit: Credit,
        policy: Policy,
        no_local: bool,
    },
    Unsubscribe {
        connection: Pick,
        name: u8,
    },
    Send {
        session: Pick,
        place: Place,
        priority: u8,
        persistent: bool,
        size: u16,
        live: Option<u16>,
        transacted: bool,
    },
    HandOver {
        subscription: Pick,
        count: u8,
    },
    Acknowledge {
        subscription: Pick,
        skip: u8,
        count: u8,
        word: Word,
        transacted: bool,
    },
    Grant {
        subscription: Pick,
        credit: u8,
    },
    Drain {
        subscription: Pick,
    },
    ChangeWindow {
        subscription: Pick,
        window: Window,
    },
    /// An operator does something with every so many-th message of a queue.
    Manage {
        place: Place,
        deed: Deed,
        to: Place,
        every: u8,
    },
    /// By an operator, for those who left theirs to the broker.
    SetPrefetch {
        place: Place,
        prefetch: u8,
    },
    /// A command that names what is not there.
    Misuse {
        session: Pick,
        misuse: Misuse,
    },
    Commit {
        session: Pick,
    },
    Rollback {
        session: Pick,
    },
    CloseSubscription {
        subscription: Pick,
        handed_over: u8,
    },
    CloseSession {
        session: Pick,
    },
    Close {
        connection: Pick,
    },
    Vanish {
        connection: Pick,
    },
    Advance {
        millis: u16,
    },
    /// From now on the store answers only by `StoreAnswers`.
    StoreWaits,
    /// The store answers so many batches; with 255 all, and each at once from now on.
    StoreAnswers {
        count: u8,
    },
    /// The store fails what it has, if that is sends and commits only.
    StoreFails,
    /// The store is full, or has room again.
    StoreFills {
        is_full: bool,
    },
    /// The store becomes full, and refuses every message that it has not answered.
    StoreRefuses,
    /// So many of the next messages that are read back cannot be.
    BodiesAreDamaged {
        count: u8,
    },
    /// The process ends, with so many of the unanswered batches written, and another one starts, with the clock set back by so
    /// many milliseconds.
    Restart {
        survive: u8,
        set_back: u16,
    },
    /// The last message of a session is sent again.
    Resend {
        session: Pick,
        transacted: bool,
    },
    BeginDistributed {
        session: Pick,
    },
    Prepare {
        session: Pick,
        ends_first: bool,
    },
    EndPrepared {
        connection: Pick,
        transaction: Pick,
        commits: bool,
    },
    CreateTemporary {
        connection: Pick,
        is_topic: bool,
    },
    /// By its own connection, or by another, which may not.
    DeleteTemporary {
        connection: Pick,
        temporary: Pick,
    },
    Watch {
        connection: Pick,
    },
    Browse {
        session: Pick,
        place: Place,
    },
    Look {
        browser: Pick,
        look: Look,
    },
    /// The prepared transactions are asked for.
    ListPrepared {
        connection: Pick,
    },
}

/// What an operator does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deed {
    Purge,
    Retry,
    Move,
    Copy,
}

/// How much is under way to a consumer: the prefetch, and by how much at most it widens with what the application has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window(pub(crate) u32, pub(crate) Option<u32>);

/// What a client gets wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Misuse {
    /// An acknowledgement within its transaction, which can only be rolled back then.
    AcknowledgesWhatIsNot,
    /// A send within its transaction by a producer that it never opened.
    SendsByNobody,
    CommitsWhatIsNot,
    /// The second phase of a commit of its transaction, without a first.
    CommitsUnprepared,
    SubscribesInNoSession,
    GrantsToNobody,
    /// A temporary destination whose name belongs to no connection.
    NamesWhatIsNotItsOwn,
    /// A temporary destination that is there.
    NamesWhatIsThere,
}

/// A redelivery policy of the histories.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Policy {
    /// The broker's.
    Default,
    /// One redelivery at once.
    Once,
    /// None.
    Never,
    /// Two, each later than the one before.
    BackOff,
    /// Two, not blocking.
    NonBlocking,
    /// Without a limit.
    Endless,
}

impl Policy {
    pub(crate) fn policy(self) -> Option<RedeliveryPolicy> {
        let policy = RedeliveryPolicy {
            maximum_redeliveries: Some(1),
            initial_delay: Duration::ZERO,
            delay: Duration::ZERO,
            ..RedeliveryPolicy::default()
        };
        let late = Duration::from_millis(100);
        Some(match self {
            Self::Default => return None,
            Self::Once => policy,
            Self::Never => RedeliveryPolicy { maximum_redeliveries: Some(0), ..policy },
            Self::BackOff => RedeliveryPolicy {
                maximum_redeliveries: Some(2),
                initial_delay: late,
                back_off: Some(3.0),
                ..policy
            },
            Self::NonBlocking => RedeliveryPolicy {
                maximum_redeliveries: Some(2),
                initial_delay: late,
                delay: late,
                non_blocking: true,
                ..policy
            },
            Self::Endless => RedeliveryPolicy { maximum_redeliveries: None, ..policy },
        })
    }
}

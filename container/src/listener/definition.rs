//! What is known of a listener before it runs.

use std::fmt;

use super::{Acknowledge, BoxFuture, Concurrency, Invocation, Outcome};
use crate::beans::{BeanArgument, BeanRequest};

/// A listener as `#[jms_listener]` defines it: `on_order::DEF` for the function `on_order`.
///
/// What is `None` is left to `[listener_containers.NAME]`, and everything here to `[listeners.ID]`.
#[derive(Clone, Copy, Debug)]
pub struct ListenerDef {
    /// The function's name, unless the attribute gives an `id`.
    pub id: &'static str,
    /// The path of the module that it stands in.
    pub module: &'static str,
    /// Where its attribute stands: the file, the line and the column, with colons between them.
    pub location: &'static str,
    /// Where its messages come from.
    pub destination: ListenerDestination,
    /// The name of its durable subscription, if it has one.
    pub subscription: Option<&'static str>,
    /// The client id of its connection, under which that subscription is kept.
    pub client_id: Option<&'static str>,
    /// When a message is settled.
    pub acknowledge: Option<Acknowledge>,
    /// How many workers.
    pub concurrency: Option<Concurrency>,
    /// Where replies go that the request names no address for.
    pub send_to: Option<&'static str>,
    /// The name of its `[listener_containers.NAME]`, `default` when absent.
    pub container: Option<&'static str>,
    /// Its arguments, for the beans that they ask for, which are checked before the start.
    pub beans: &'static [BeanArgument],
    /// Whether the function's return type is more than `()`, so that there are replies to send.
    pub replies: bool,
    /// Whether the function is blocking, so that it runs on a thread of its own and cannot be dropped.
    pub blocking: bool,
    /// Runs the function.
    pub invoke: for<'a> fn(&'a mut Invocation) -> BoxFuture<'a, Outcome>,
}

impl ListenerDef {
    /// Every bean that the arguments ask for.
    pub fn bean_requests(&self) -> impl Iterator<Item = BeanRequest> {
        self.beans.iter().flat_map(|argument| argument.requests.iter().copied())
    }

    /// Every listener that is linked into the program, in the order of module and id.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all: Vec<Self> = inventory::iter::<ListenerRegistration>().map(|found| *found.0).collect();
        all.sort_by_key(|listener| (listener.module, listener.id));
        all
    }
}

/// A listener that is linked into the program; collected by `inventory`.
#[derive(Clone, Copy, Debug)]
pub struct ListenerRegistration(pub &'static ListenerDef);

inventory::collect!(ListenerRegistration);

/// Where a listener's messages come from: a key of `[destinations]`, or a physical name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerDestination {
    /// `queue = "…"`.
    Queue(&'static str),
    /// `topic = "…"`.
    Topic(&'static str),
}

impl ListenerDestination {
    /// The name as it stands in the attribute.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Queue(name) | Self::Topic(name) => name,
        }
    }

    /// Whether it is a topic.
    #[must_use]
    pub fn is_topic(self) -> bool {
        matches!(self, Self::Topic(_))
    }
}

impl fmt::Display for ListenerDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue(name) => write!(f, "queue `{name}`"),
            Self::Topic(name) => write!(f, "topic `{name}`"),
        }
    }
}

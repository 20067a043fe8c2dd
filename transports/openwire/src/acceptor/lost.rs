//! Messages that a peer sent without waiting for an answer and that came to nothing when it could not be told any more.

use std::fmt::Display;
use std::net::SocketAddr;

use corriere_core::{Destination, MessageId, TransactionId};

/// How many of them are named.
const NAMED: usize = 10;

/// A send, as it is named when it fails.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) id: Option<MessageId>,
    pub(super) destination: Option<Destination>,
    /// Its transaction, with which it stands and falls.
    pub(super) transaction: Option<TransactionId>,
}

/// The messages of one connection that came to nothing, for its end to say.
#[derive(Debug, Default)]
pub(super) struct Lost {
    count: usize,
    named: Vec<String>,
    reason: Option<String>,
}

impl Lost {
    /// Notes a send that came to nothing. What belonged to a transaction that was not committed is not lost.
    pub(super) fn note(&mut self, sent: &Sent, reason: impl Display) {
        if sent.transaction.is_some() {
            return;
        }
        self.count += 1;
        self.reason.get_or_insert_with(|| reason.to_string());
        if self.named.len() < NAMED {
            let id = sent.id.as_ref().map_or_else(|| "one without an id".to_owned(), ToString::to_string);
            let to = sent.destination.as_ref().map(|destination| format!(" to {destination}"));
            self.named.push(id + &to.unwrap_or_default());
        }
    }

    /// Says which they were.
    pub(super) fn say(&self, peer: SocketAddr) {
        let Self { count, named, reason } = self;
        let Some(reason) = reason else { return };
        let more = if *count > named.len() { ", and others" } else { "" };
        tracing::warn!(
            %peer, count, reason,
            "messages are lost that a peer had sent without waiting for an answer: {}{more}", named.join(", ")
        );
    }
}

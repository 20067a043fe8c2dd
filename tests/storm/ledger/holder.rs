//! A client from its connecting to its end, as one who may have messages.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

/// A client while it has one connection.
#[derive(Debug)]
pub(crate) struct Holder {
    /// Who it is, in words.
    pub(crate) who: String,
    /// The life of the broker that it is connected to.
    pub(crate) life: u64,
    fate: AtomicU8,
}

const GOOD: u8 = 0;
/// It ended in order, so all that it said was heard.
const CLOSED: u8 = 1;
/// It was lost, and what it said last with it.
const LOST: u8 = 2;

impl Holder {
    pub(crate) fn new(who: String, life: u64) -> Self {
        Self { who, life, fate: AtomicU8::new(GOOD) }
    }

    /// To be called before it ends in order.
    pub(crate) fn close(&self) {
        // One that is lost stays so.
        _ = self.fate.compare_exchange(GOOD, CLOSED, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// To be called before it is made to end without order.
    pub(crate) fn lose(&self) {
        self.fate.store(LOST, Ordering::SeqCst);
    }

    pub(crate) fn is_good(&self) -> bool {
        self.fate.load(Ordering::SeqCst) == GOOD
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.fate.load(Ordering::SeqCst) == LOST
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fate = if self.is_lost() { ", lost" } else { "" };
        write!(f, "{} in life {}{fate}", self.who, self.life)
    }
}

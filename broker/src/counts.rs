//! What became of the messages of a destination.

/// The conserved counts of a queue, or of a topic's subscriptions together, since the broker started:
/// [`Counts::came_in`] = [`Counts::went_out`] + `pending`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Brought back by recovery.
    pub recovered: u64,
    /// Sent to it.
    pub enqueued: u64,
    /// Moved to it, as dead letters are.
    pub moved_in: u64,
    /// Settled by a consumer.
    pub acknowledged: u64,
    /// Past their expiration.
    pub expired: u64,
    /// Gone to the dead letters, for a failure.
    pub dead_lettered: u64,
    /// Dropped by policy, among them what a closing topic subscription left behind.
    pub discarded: u64,
    /// Evicted to make room.
    pub evicted: u64,
    /// Purged by an operator.
    pub purged: u64,
    /// Moved away by an operator.
    pub moved_out: u64,
    /// There now, in flight and waiting for their redelivery included.
    pub pending: u64,
    /// Of `pending`: with a consumer now.
    pub in_flight: u64,
    /// Deliveries that were not the first; not conserved.
    pub redelivered: u64,
    /// Sends that were dropped because their message was there before; not conserved.
    pub duplicates: u64,
}

impl Counts {
    /// All that ever came in.
    #[must_use]
    pub fn came_in(&self) -> u64 {
        self.recovered + self.enqueued + self.moved_in
    }

    /// All that left.
    #[must_use]
    pub fn went_out(&self) -> u64 {
        self.acknowledged
            + self.expired
            + self.dead_lettered
            + self.discarded
            + self.evicted
            + self.purged
            + self.moved_out
    }

    /// Whether nothing vanished and nothing was made up.
    #[must_use]
    pub fn are_conserved(&self) -> bool {
        self.came_in() == self.went_out() + self.pending
    }

    /// All that is there is dropped.
    pub(crate) fn discard_all(&mut self) {
        self.discarded += std::mem::take(&mut self.pending);
        self.in_flight = 0;
    }

    /// Adds the counts of another queue to these.
    pub(crate) fn add(&mut self, other: &Self) {
        self.recovered += other.recovered;
        self.enqueued += other.enqueued;
        self.moved_in += other.moved_in;
        self.acknowledged += other.acknowledged;
        self.expired += other.expired;
        self.dead_lettered += other.dead_lettered;
        self.discarded += other.discarded;
        self.evicted += other.evicted;
        self.purged += other.purged;
        self.moved_out += other.moved_out;
        self.pending += other.pending;
        self.in_flight += other.in_flight;
        self.redelivered += other.redelivered;
        self.duplicates += other.duplicates;
    }
}

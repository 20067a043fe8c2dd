//! Whether the histories reach what they are for. One that comes to nothing would let every fault pass.

/// How often things happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reach {
    pub(crate) crashes: u64,
    pub(crate) recovered_messages: u64,
    pub(crate) recovered_branches: u64,
    /// Messages that durable subscriptions had when the process ended.
    pub(crate) recovered_copies: u64,
    /// Durable subscriptions that were made anew, as others.
    pub(crate) made_anew: u64,
    /// Messages that one of them did not get as its own client had sent them.
    pub(crate) left_out: u64,
    /// Batches that were given to the store before an end and not confirmed.
    pub(crate) unconfirmed_batches: u64,
    /// Messages that were read back for a consumer.
    pub(crate) loads: u64,
    pub(crate) attempts: u64,
    /// Messages that were in the hands of the application when the process ended.
    pub(crate) counted_attempts: u64,
    pub(crate) dead_letters: u64,
    pub(crate) drained: u64,
    /// Segments that were given up, to be used again.
    pub(crate) recycled: u64,
    /// Bodies that had files of their own.
    pub(crate) large: u64,
    /// Times that the store said that it is full.
    pub(crate) full: u64,
}

impl Reach {
    pub(crate) fn add(&mut self, other: &Self) {
        self.crashes += other.crashes;
        self.recovered_messages += other.recovered_messages;
        self.recovered_branches += other.recovered_branches;
        self.recovered_copies += other.recovered_copies;
        self.made_anew += other.made_anew;
        self.left_out += other.left_out;
        self.unconfirmed_batches += other.unconfirmed_batches;
        self.loads += other.loads;
        self.attempts += other.attempts;
        self.counted_attempts += other.counted_attempts;
        self.dead_letters += other.dead_letters;
        self.drained += other.drained;
        self.recycled += other.recycled;
        self.large += other.large;
        self.full += other.full;
    }

    pub(crate) fn assert_is_everywhere(&self) {
        println!("{self:?}");
        if self.crashes < 300 {
            return;
        }
        let Self {
            recovered_messages, recovered_copies, recovered_branches, unconfirmed_batches, loads, ..
        } = *self;
        let Self { attempts, counted_attempts, dead_letters, drained, made_anew, left_out, .. } = *self;
        let from_the_disk =
            [recovered_messages, recovered_copies, recovered_branches, unconfirmed_batches, loads];
        let from_the_clients = [attempts, counted_attempts, dead_letters, drained, made_anew, left_out];
        for reached in from_the_disk.into_iter().chain(from_the_clients) {
            assert!(reached > 20, "{self:?}");
        }
    }
}

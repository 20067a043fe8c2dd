//! What became of messages that an operator did something with.

/// What became of the messages that a filter chose: `matched` = `done` + `skipped` + `without_destination` + `no_room`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationCounts {
    /// How many the filter chose, of those that were there at the beginning.
    pub matched: u64,
    /// Purged, moved or copied.
    pub done: u64,
    /// Left alone: with a consumer or in an open transaction, about to become a dead letter, or gone by their turn.
    pub skipped: u64,
    /// Left where they are as there is nowhere to bring them: dead letters that do not say where they came from, a topic to
    /// which nobody is subscribed, a temporary destination that is gone.
    pub without_destination: u64,
    /// Left where they are for want of room, in the store or in memory.
    pub no_room: u64,
    /// Not shown to the filter, as they could not be read back.
    pub unreadable: u64,
}

impl OperationCounts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.matched += other.matched;
        self.done += other.done;
        self.skipped += other.skipped;
        self.without_destination += other.without_destination;
        self.no_room += other.no_room;
        self.unreadable += other.unreadable;
    }
}

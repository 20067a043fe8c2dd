//! Credit that is granted message by message.

/// What is left of what was granted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExplicitCredit {
    left: u64,
    /// Of `left`, what is to be taken back.
    draining: u64,
}

impl ExplicitCredit {
    pub(super) fn left(self) -> u64 {
        self.left
    }

    pub(super) fn grant(&mut self, credit: u32) {
        self.left = self.left.saturating_add(u64::from(credit));
    }

    /// Takes note of a delivery.
    pub(super) fn use_one(&mut self) {
        self.left -= 1;
        self.draining = self.draining.saturating_sub(1);
    }

    /// Takes note of a delivery that was taken back.
    pub(super) fn free_one(&mut self) {
        self.left += 1;
    }

    /// Begins to take back the credit that is there now. Until it is taken, messages may come by it.
    pub(super) fn begin_drain(&mut self) {
        self.draining = self.left;
    }

    /// Whether all credit is used that a drain is to take back.
    pub(super) fn is_drained(self) -> bool {
        self.draining == 0
    }

    /// Takes back what is left of the credit that was there when the last drain began.
    pub(super) fn end_drain(&mut self) {
        self.left -= std::mem::take(&mut self.draining);
    }
}

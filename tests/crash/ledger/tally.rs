//! Sets of places, and totals.

use super::letter::Spot;

/// Where a message may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spots(u8);

impl Spots {
    pub(super) fn only(spot: Spot) -> Self {
        Self(1 << spot as u8)
    }

    pub(super) fn none() -> Self {
        Self(0)
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn has(self, spot: Spot) -> bool {
        self.0 & (1 << spot as u8) != 0
    }

    /// What comes of a move that was made (`Some(true)`), was not (`Some(false)`), or may have been made.
    pub(super) fn moved(self, from: Spot, to: Spot, made: Option<bool>) -> Self {
        if !self.has(from) || made == Some(false) {
            return self;
        }
        let with = self.0 | (1 << to as u8);
        Self(if made == Some(true) { with & !(1 << from as u8) } else { with })
    }

    pub(super) fn names(self) -> Vec<Spot> {
        [Spot::Never, Spot::Queue, Spot::Prepared, Spot::Dead, Spot::Gone]
            .into_iter()
            .filter(|spot| self.has(*spot))
            .collect()
    }
}

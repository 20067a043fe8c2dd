//! Versions of the wire format.

use std::fmt;

/// A version of OpenWire that is spoken here: 9 to 12 (OpenWire, section 2).
///
/// Later versions have more fields; a field that the agreed version does not have is left out wherever it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(u8);

impl Version {
    /// The oldest one.
    pub const MINIMUM: Self = Self(9);

    /// The newest one.
    pub const MAXIMUM: Self = Self(12);

    /// The version that is spoken with a peer that announces `announced`: that one, or the newest there is here. `None`
    /// when the peer's is too old.
    #[must_use]
    pub fn agreed(announced: i32) -> Option<Self> {
        let newest = announced.min(i32::from(Self::MAXIMUM.0));
        u8::try_from(newest).ok().map(Self).filter(|version| *version >= Self::MINIMUM)
    }

    /// 9 to 12.
    #[must_use]
    pub fn number(self) -> u8 {
        self.0
    }

    /// All of them, the oldest first.
    #[cfg(test)]
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (Self::MINIMUM.0..=Self::MAXIMUM.0).map(Self)
    }
}

impl Default for Version {
    /// The newest one.
    fn default() -> Self {
        Self::MAXIMUM
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_peer_is_spoken_to_in_our_newest_and_an_older_one_not_at_all() {
        let agreed = |announced| Version::agreed(announced).map(Version::number);
        assert_eq!(
            (agreed(9), agreed(12), agreed(13), agreed(i32::MAX)),
            (Some(9), Some(12), Some(12), Some(12))
        );
        assert_eq!(
            (agreed(8), agreed(1), agreed(0), agreed(-1), agreed(i32::MIN)),
            (None, None, None, None, None)
        );
        assert_eq!(Version::all().count(), 4);
    }
}

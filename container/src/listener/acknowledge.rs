//! Who acknowledges, and when.

use std::fmt;
use std::str::FromStr;

use corriere_core::AcknowledgeMode;
use thiserror::Error;

/// When a listener's message is settled. In no mode is it settled before the function has returned `Ok`, unless the
/// function settles it by itself; an `Err` or a panic gives it back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acknowledge {
    /// `ack = "auto"`: when the function has returned `Ok`.
    #[default]
    Auto,
    /// `ack = "client"`: by the function, else when it has returned `Ok`. `Delivery::acknowledge` settles this one message.
    Client,
    /// `ack = "transacted"`: with the session's transaction, which is committed when the function has returned `Ok` and
    /// takes in everything that was sent with the session.
    Transacted,
    /// `ack = "manual"`: only by who calls `Delivery::acknowledge`, which may be long after the function has returned and
    /// settles this one message.
    Manual,
}

impl Acknowledge {
    /// The mode of the session that such a listener receives with.
    #[must_use]
    pub fn session_mode(self) -> AcknowledgeMode {
        match self {
            Self::Auto => AcknowledgeMode::Auto,
            Self::Client | Self::Manual => AcknowledgeMode::Client,
            Self::Transacted => AcknowledgeMode::Transacted,
        }
    }
}

impl fmt::Display for Acknowledge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Client => "client",
            Self::Transacted => "transacted",
            Self::Manual => "manual",
        })
    }
}

impl FromStr for Acknowledge {
    type Err = AcknowledgeError;

    fn from_str(text: &str) -> Result<Self, AcknowledgeError> {
        match text {
            "auto" => Ok(Self::Auto),
            "client" => Ok(Self::Client),
            "transacted" => Ok(Self::Transacted),
            "manual" => Ok(Self::Manual),
            "individual" | "dups_ok" => Err(AcknowledgeError::NotYet { found: text.to_owned() }),
            _ => Err(AcknowledgeError::Unknown { found: text.to_owned() }),
        }
    }
}

/// A text that is no acknowledge mode.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcknowledgeError {
    /// None that there will be.
    #[error("`{found}` is not an acknowledge mode; expected `auto`, `client`, `transacted` or `manual`")]
    Unknown {
        /// The text.
        found: String,
    },
    /// One of a later version.
    #[error("`{found}` is not available yet; expected `auto`, `client`, `transacted` or `manual`")]
    NotYet {
        /// The text.
        found: String,
    },
}

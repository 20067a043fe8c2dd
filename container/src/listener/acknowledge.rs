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
    /// `ack = "dups_ok"`: when the function has returned `Ok`, of which a topic's broker is told later, of many messages at once;
    /// those of the last ones may come again if the process dies. On a queue as `auto`.
    DupsOk,
    /// `ack = "individual"`: by the function, else when it has returned `Ok`, each message by itself.
    Individual,
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
            Self::DupsOk => AcknowledgeMode::DupsOk,
            Self::Individual => AcknowledgeMode::Individual,
            Self::Transacted => AcknowledgeMode::Transacted,
        }
    }
}

impl fmt::Display for Acknowledge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Client => "client",
            Self::DupsOk => "dups_ok",
            Self::Individual => "individual",
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
            "dups_ok" => Ok(Self::DupsOk),
            "individual" => Ok(Self::Individual),
            "transacted" => Ok(Self::Transacted),
            "manual" => Ok(Self::Manual),
            _ => Err(AcknowledgeError { found: text.to_owned() }),
        }
    }
}

/// A text that is no acknowledge mode.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "`{found}` is not an acknowledge mode; expected `auto`, `client`, `dups_ok`, `individual`, `transacted` or `manual`"
)]
pub struct AcknowledgeError {
    /// The text.
    pub found: String,
}

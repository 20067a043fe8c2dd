//! The value of `ack`.

use darling::{Error, FromMeta, Result};

/// When a message is settled. The same texts as the container's own, which this crate stands below.
#[derive(Clone, Copy, Debug)]
pub(super) enum Acknowledge {
    Auto,
    Client,
    DupsOk,
    Individual,
    Transacted,
    Manual,
}

impl FromMeta for Acknowledge {
    fn from_string(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Self::Auto),
            "client" => Ok(Self::Client),
            "dups_ok" => Ok(Self::DupsOk),
            "individual" => Ok(Self::Individual),
            "transacted" => Ok(Self::Transacted),
            "manual" => Ok(Self::Manual),
            _ => Err(Error::custom(format!(
                "`{text}` is not an acknowledge mode; expected `auto`, `client`, `dups_ok`, `individual`, `transacted` or `manual`"
            ))),
        }
    }
}

//! The value of `ack`.

use darling::{Error, FromMeta, Result};

/// When a message is settled. The same texts as the container's own, which this crate stands below.
#[derive(Clone, Copy, Debug)]
pub(super) enum Acknowledge {
    Auto,
    Client,
    Transacted,
    Manual,
}

impl FromMeta for Acknowledge {
    fn from_string(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Self::Auto),
            "client" => Ok(Self::Client),
            "transacted" => Ok(Self::Transacted),
            "manual" => Ok(Self::Manual),
            "individual" | "dups_ok" => Err(Error::custom(format!(
                "`{text}` is not available yet; expected `auto`, `client`, `transacted` or `manual`"
            ))),
            _ => Err(Error::custom(format!(
                "`{text}` is not an acknowledge mode; expected `auto`, `client`, `transacted` or `manual`"
            ))),
        }
    }
}

//! Passwords, which nothing shows.

use std::fmt;
use std::sync::Arc;

use crate::error::{DecodeError, EncodeError};
use crate::loose::{Field, Reader, Writer};

/// A password. Its form for debugging does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Arc<str>);

impl Password {
    /// This password.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The password, for whoever checks it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl Field for Option<Password> {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Option::<Arc<str>>::read(reader)?.map(Password))
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.flag(self.is_some());
        self.as_ref().map_or(Ok(()), |password| writer.short_text(password.reveal()))
    }

    #[cfg(test)]
    fn sample(source: &mut crate::sample::Source) -> Self {
        Option::<Arc<str>>::sample(source).map(Password)
    }
}

#[cfg(test)]
mod tests {
    use crate::structures::ConnectionInfo;

    use super::*;

    #[test]
    fn no_form_for_debugging_shows_a_password() {
        let info = ConnectionInfo { password: Some(Password::new("secret")), ..ConnectionInfo::default() };
        assert!(!format!("{info:?}").contains("secret"));
        assert_eq!(info.password.as_ref().map(Password::reveal), Some("secret"));
    }
}

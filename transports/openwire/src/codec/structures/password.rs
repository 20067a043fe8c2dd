//! Passwords, which are core's, as nothing shows them.

use std::sync::Arc;

use corriere_core::provider::Password;

use crate::codec::error::{DecodeError, EncodeError};
use crate::codec::loose::{Field, Reader, Writer};

impl Field for Option<Password> {
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Option::<Arc<str>>::read(reader)?.map(Password))
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.as_ref().map(|Password(text)| Arc::clone(text)).write(writer)
    }

    #[cfg(test)]
    fn sample(source: &mut crate::codec::sample::Source) -> Self {
        Option::<Arc<str>>::sample(source).map(Password)
    }
}

#[cfg(test)]
mod tests {
    use crate::codec::structures::ConnectionInfo;

    use super::*;

    #[test]
    fn no_form_for_debugging_shows_a_password() {
        let info = ConnectionInfo { password: Some(Password("secret".into())), ..ConnectionInfo::default() };
        assert!(!format!("{info:?}").contains("secret"));
        assert_eq!(info.password.as_ref().map(|Password(text)| &**text), Some("secret"));
    }
}

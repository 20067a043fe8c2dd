//! Where a broker listens.

use std::fmt;

use corriere_core::provider::ProviderError;
use corriere_core::user_info::without_user_info;

/// Host and port of a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Address {
    /// What stands behind `tcp:`, as in `//broker.example:61616`; the slashes may be missing.
    pub(super) fn parse(text: &str) -> Result<Self, ProviderError> {
        let text = text.strip_prefix("//").unwrap_or(text);
        let authority = text.strip_suffix('/').unwrap_or(text);
        let parts = authority.rsplit_once(':').and_then(|(host, port)| {
            let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            // Without brackets the last part of such an address would be taken for the port.
            let host = bare.or_else(|| Some(host).filter(|host| !host.contains([':', '/', '@'])))?;
            let port = port.parse().ok().filter(|port| *port > 0)?;
            Some(Self { host: host.to_owned(), port }).filter(|address| !address.host.is_empty())
        });
        parts.ok_or_else(|| {
            let url = format!("tcp://{text}");
            ProviderError::Address {
                url: without_user_info(&url).unwrap_or(url),
                expected: "tcp://HOST:PORT",
            }
        })
    }

    /// Why it cannot be connected to.
    pub(super) fn unreachable(&self, reason: impl fmt::Display) -> ProviderError {
        ProviderError::Unreachable { url: self.to_string(), reason: reason.to_string() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "tcp://[{}]:{}", self.host, self.port)
        } else {
            write!(f, "tcp://{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use corriere_core::provider::provider_for;

    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for (text, host, port) in [
            ("//localhost:61616", "localhost", 61_616),
            ("//127.0.0.1:1/", "127.0.0.1", 1),
            ("//[::1]:5", "::1", 5),
            ("localhost:5", "localhost", 5),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!((address.host.as_str(), address.port), (host, port));
            assert_eq!(address.to_string(), format!("tcp://{}", text.trim_matches('/')));
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_form_that_it_should_have() {
        for text in
            ["", "//", "//localhost", "//localhost:", "//:1", "//a:0", "//a:65536", "//::1:5", "//a/b:1"]
        {
            let error = Address::parse(text).unwrap_err().to_string();
            let url = text.trim_start_matches('/');
            assert_eq!(error, format!("`tcp://{url}` is no address of a broker; expected `tcp://HOST:PORT`"));
        }
    }

    #[test]
    fn a_scheme_without_a_port_is_not_told_as_a_broker_that_does_not_answer() {
        let error = provider_for("tcp", "//127.0.0.1").unwrap_err();
        assert!(matches!(&error, ProviderError::Address { url, .. } if url == "tcp://127.0.0.1"), "{error}");
    }

    #[test]
    fn a_user_in_front_of_the_host_is_refused_and_never_shown() {
        for text in ["//u:geheim@h:1", "//geheim@h:1", "//geheim@h"] {
            let error = Address::parse(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("geheim"), "{error}");
        }
    }
}

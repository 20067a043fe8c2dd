//! Where a broker listens.

use std::fmt;

use corriere_core::provider::ProviderError;

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
            let host = bare.or_else(|| Some(host).filter(|host| !host.contains([':', '/'])))?;
            let port = port.parse().ok().filter(|port| *port > 0)?;
            Some(Self { host: host.to_owned(), port }).filter(|address| !address.host.is_empty())
        });
        parts.ok_or_else(|| ProviderError::Unreachable {
            url: format!("tcp://{text}"),
            reason: "expected a host and a port, as in `tcp://localhost:61616`".to_owned(),
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
    fn what_is_no_address_is_refused_with_an_example() {
        for text in
            ["", "//", "//localhost", "//localhost:", "//:1", "//a:0", "//a:65536", "//::1:5", "//a/b:1"]
        {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(error.contains("`tcp://localhost:61616`"), "{error}");
            assert!(error.contains(&format!("`tcp://{}`", text.trim_start_matches('/'))), "{error}");
        }
    }
}

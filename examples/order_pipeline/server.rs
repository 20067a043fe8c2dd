//! Mail servers by their URLs.

use std::fmt;

use lettre::transport::smtp::authentication::Credentials;
use percent_encoding::percent_decode_str;
use thiserror::Error;

/// Where mail servers listen.
const PORT: u16 = 25;

/// A mail server, by a URL such as `smtp://user:password@mail.example:25`. Nothing of it that is secret is ever shown.
#[derive(Clone)]
pub(crate) struct Server {
    pub host: String,
    pub port: u16,
    pub credentials: Option<Credentials>,
}

/// Why a URL names no mail server. It may hold a password, so it is not shown.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the mailer's `url` {0}; expected something like `smtp://user:password@mail.example:25`")]
pub(crate) struct ServerError(&'static str);

impl Server {
    /// Takes a URL apart. What is special in a user's name or password is written as `%` and two digits.
    pub(crate) fn parse(url: &str) -> Result<Self, ServerError> {
        if url.starts_with("smtps:") {
            return Err(ServerError("asks for TLS, which this example does without"));
        }
        let rest = url.strip_prefix("smtp://").ok_or(ServerError("does not begin with `smtp://`"))?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, address) = rest.rsplit_once('@').map_or((None, rest), |(user, rest)| (Some(user), rest));
        let (host, port) = host_and_port(address)?;
        let credentials = user.map(credentials).transpose()?;
        Ok(Self { host: host.to_owned(), port, credentials })
    }
}

fn host_and_port(address: &str) -> Result<(&str, u16), ServerError> {
    // An address of version 6 is full of colons, and therefore stands in brackets.
    let (host, port) = match address.strip_prefix('[') {
        Some(address) => address.split_once(']').ok_or(ServerError("has a `[` without its `]`"))?,
        None => address.split_at(address.find(':').unwrap_or(address.len())),
    };
    if host.is_empty() || host.contains(['/', '?', '#', ' ']) {
        return Err(ServerError("names no host, or more than host and port"));
    }
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().map_err(|_| ServerError("has a port that is no number up to 65535"))?,
        None if port.is_empty() => PORT,
        None => return Err(ServerError("has something behind its `]` that is no port")),
    };
    Ok((host, port))
}

fn credentials(text: &str) -> Result<Credentials, ServerError> {
    let decoded = |text: &str| {
        let text = percent_decode_str(text).decode_utf8();
        text.map(String::from).map_err(|_| ServerError("has a user or password that is not UTF-8"))
    };
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    Ok(Credentials::new(decoded(user)?, decoded(password)?))
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        Server::parse(url).map_or_else(|error| error.to_string(), |server| server.to_string())
    }

    #[test]
    fn a_server_is_a_host_and_perhaps_a_port() {
        assert_eq!(shown("smtp://mail.example"), "mail.example:25");
        assert_eq!(shown("smtp://127.0.0.1:2525/"), "127.0.0.1:2525");
        assert_eq!(shown("smtp://[::1]:2525"), "[::1]:2525");
        assert_eq!(shown("smtp://u:p%40ss@mail.example:587"), "mail.example:587");
    }

    #[test]
    fn user_and_password_are_decoded_and_never_shown() {
        let server = Server::parse("smtp://me%40mail.example:geheim%3A%2F@mail.example").unwrap();
        let expected = Credentials::new("me@mail.example".to_owned(), "geheim:/".to_owned());
        assert_eq!(server.credentials, Some(expected));
        assert!(!format!("{server} {server:?}").contains("geheim"));
        for broken in ["smtp://me:geheim@", "smtp://me:geheim@mail:x", "http://me:geheim@mail"] {
            let error = Server::parse(broken).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("geheim"), "{error}");
        }
    }

    #[test]
    fn what_names_no_server_says_why() {
        for (url, why) in [
            ("", "does not begin with `smtp://`"),
            ("mail.example:25", "does not begin with `smtp://`"),
            ("smtps://mail.example", "asks for TLS"),
            ("smtp://", "names no host"),
            ("smtp://:25", "names no host"),
            ("smtp://mail.example/inbox", "or more than host and port"),
            ("smtp://mail.example:", "a port that is no number"),
            ("smtp://mail.example:65536", "a port that is no number"),
            ("smtp://[::1", "a `[` without its `]`"),
            ("smtp://[::1]25", "no port"),
            ("smtp://%ff@mail.example", "not UTF-8"),
        ] {
            assert!(shown(url).contains(why), "{url}: {}", shown(url));
        }
    }
}

//! Where an acceptor listens: `tcp://HOST:PORT` with options as ActiveMQ writes them.

use std::io;
use std::net::SocketAddr;

use corriere_core::nearest::nearest;
use corriere_core::url_option::{UrlOption, UrlOptionError, flag, milliseconds, read_options};
use corriere_core::user_info::without_user_info;
use thiserror::Error;

use super::accepting::FIRST_FRAMES;
use crate::codec::negotiation::Preferences;

/// Why an acceptor cannot listen.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// It is no address of this transport.
    #[error("`{url}` is no address to listen on; expected something like `tcp://127.0.0.1:61616`")]
    Address {
        /// The address.
        url: String,
    },
    /// It has a user in front of its host.
    #[error(
        "`{url}` has a user in front of the host; expected a host and a port alone, as in `tcp://127.0.0.1:61616`, as nobody is asked who they are yet"
    )]
    UserInfo {
        /// The address, without its options and with `***` for the user.
        url: String,
    },
    /// It has another scheme.
    #[error(
        "`{url}` is no address to listen on, as its scheme is `{scheme}`; {}",
        expected_scheme(url, scheme, nearest.as_deref())
    )]
    Scheme {
        /// The address, without its options.
        url: String,
        /// Its scheme.
        scheme: String,
        /// The scheme that it was most likely meant to be.
        nearest: Option<&'static str>,
    },
    /// One of its options is wrong.
    #[error(transparent)]
    Options(#[from] UrlOptionError),
    /// Others than this machine could connect, and there is nobody who would ask them who they are.
    #[error(
        "`{url}` can be reached from other machines ({address}), and this broker has no users yet; expected a loopback address such as `tcp://127.0.0.1:{}`",
        address.port()
    )]
    NotLoopback {
        /// The address, without its options.
        url: String,
        /// What its host is.
        address: SocketAddr,
    },
    /// The name of the host is unknown, or nobody can listen there.
    #[error("cannot listen on `{url}`: {}", super::why_not_listening(error))]
    Io {
        /// The address, without its options.
        url: String,
        /// What the system says.
        #[source]
        error: io::Error,
    },
}

/// What is listened on.
const SCHEME: &str = "tcp";

fn expected_scheme(url: &str, scheme: &str, nearest: Option<&str>) -> String {
    match nearest {
        Some(nearest) => format!("did you mean `{nearest}{}`?", url.strip_prefix(scheme).unwrap_or_default()),
        None => format!("expected something like `{SCHEME}://127.0.0.1:61616`"),
    }
}

/// An address with what its options say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListenAddress {
    /// Without its options.
    pub(super) url: String,
    /// Host and port.
    pub(super) target: String,
    pub(super) options: Options,
}

/// What the options of an address say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// How many connections there may be at once; `None` for as many as come.
    pub(super) maximum_connections: Option<usize>,
    pub(super) preferences: Preferences,
}

/// Names and meanings are those of ActiveMQ's transport connectors.
const OPTIONS: &[UrlOption<Options>] = &[
    UrlOption {
        name: "maximumConnections",
        set: |options, value| {
            let maximum = value.parse().ok().filter(|maximum| *maximum > 0);
            let maximum = maximum.ok_or("a number of connections above 0")?;
            options.maximum_connections = Some(maximum);
            Ok(())
        },
    },
    UrlOption {
        name: "wireFormat.maxFrameSize",
        set: |options, value| {
            // What introduces a peer has to fit, and what it is told when something is refused.
            let size = value.parse().ok().filter(|size| *size >= FIRST_FRAMES);
            let size = size.ok_or("a number of bytes from 65536 up")?;
            options.preferences.maximum_frame_size = size;
            Ok(())
        },
    },
    UrlOption {
        name: "wireFormat.maxInactivityDuration",
        set: |options, value| {
            let silence = milliseconds(value)?;
            options.preferences.maximum_inactivity = (!silence.is_zero()).then_some(silence);
            Ok(())
        },
    },
    UrlOption {
        // Spelled so in ActiveMQ.
        name: "wireFormat.maxInactivityDurationInitalDelay",
        set: |options, value| {
            let delay = milliseconds(value)?;
            if delay.is_zero() {
                return Err("a number of milliseconds above 0");
            }
            options.preferences.initial_delay = delay;
            Ok(())
        },
    },
    UrlOption {
        name: "wireFormat.stackTraceEnabled",
        set: |options, value| flag(value).map(|flag| options.preferences.stack_traces = flag),
    },
    UrlOption {
        name: "wireFormat.tcpNoDelayEnabled",
        set: |options, value| flag(value).map(|flag| options.preferences.tcp_no_delay = flag),
    },
    UrlOption { name: "wireFormat.cacheEnabled", set: |_, value| declined(value) },
    UrlOption { name: "wireFormat.tightEncodingEnabled", set: |_, value| declined(value) },
    UrlOption { name: "wireFormat.sizePrefixDisabled", set: |_, value| declined(value) },
];

/// An encoding that peers are told not to use.
fn declined(value: &str) -> Result<(), &'static str> {
    if value == "false" { Ok(()) } else { Err("`false`, as nothing else is offered yet") }
}

impl ListenAddress {
    pub(super) fn parse(url: &str) -> Result<Self, BindError> {
        no_user(url)?;
        let (address, query) = split(url);
        let target = target(address)?;
        let mut options = Options::default();
        read_options(address, query, OPTIONS, &[], &mut options)?;
        Ok(Self { url: address.to_owned(), target: target.to_owned(), options })
    }

    /// All that is wrong with an address, as far as that can be said without asking for its host.
    pub(super) fn mistakes(url: &str) -> Vec<BindError> {
        if let Err(mistake) = no_user(url) {
            // All others would show the address.
            return vec![mistake];
        }
        let (address, query) = split(url);
        let mut mistakes = Vec::new();
        match target(address) {
            Ok(target) => {
                let literal = target.parse::<SocketAddr>().ok();
                mistakes.extend(literal.and_then(|literal| not_loopback(address, &[literal])));
            }
            Err(mistake) => mistakes.push(mistake),
        }
        let read = |query| read_options(address, query, OPTIONS, &[], &mut Options::default());
        let options: Vec<_> = query.split('&').filter_map(|option| read(option).err()).collect();
        if options.is_empty() {
            // Only together they say that one is there twice.
            mistakes.extend(read(query).err().map(BindError::from));
        }
        mistakes.extend(options.into_iter().map(BindError::from));
        mistakes
    }
}

/// That one of the addresses of a host is for others than this machine.
pub(super) fn not_loopback(url: &str, candidates: &[SocketAddr]) -> Option<BindError> {
    let outside = candidates.iter().find(|candidate| !candidate.ip().is_loopback())?;
    Some(BindError::NotLoopback { url: url.to_owned(), address: *outside })
}

fn split(url: &str) -> (&str, &str) {
    url.split_once('?').unwrap_or((url, ""))
}

fn no_user(url: &str) -> Result<(), BindError> {
    without_user_info(url).map_or(Ok(()), |url| Err(BindError::UserInfo { url }))
}

/// Host and port of an address without its options.
fn target(address: &str) -> Result<&str, BindError> {
    let no_address = || BindError::Address { url: address.to_owned() };
    let (scheme, target) = address.split_once("://").ok_or_else(no_address)?;
    if scheme != SCHEME {
        let nearest = nearest(scheme, [SCHEME]);
        return Err(BindError::Scheme { url: address.to_owned(), scheme: scheme.to_owned(), nearest });
    }
    let target = target.trim_end_matches('/');
    let has_port =
        target.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if has_port { Ok(target) } else { Err(no_address()) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn options_are_read_with_their_activemq_names() {
        let address = ListenAddress::parse(
            "tcp://127.0.0.1:61616?maximumConnections=1000&wireFormat.maxFrameSize=104857600\
             &wireFormat.maxInactivityDuration=0&wireFormat.maxInactivityDurationInitalDelay=500&wireFormat.cacheEnabled=false",
        )
        .unwrap();
        assert_eq!(
            (address.url.as_str(), address.target.as_str()),
            ("tcp://127.0.0.1:61616", "127.0.0.1:61616")
        );
        assert_eq!(address.options.maximum_connections, Some(1_000));
        let preferences = address.options.preferences;
        assert_eq!((preferences.maximum_frame_size, preferences.maximum_inactivity), (104_857_600, None));
        assert_eq!(preferences.initial_delay, Duration::from_millis(500));
        assert_eq!(ListenAddress::parse("tcp://[::1]:0/").unwrap().target, "[::1]:0");
    }

    #[test]
    fn the_documentation_has_a_row_for_every_option_and_no_other() {
        let text = include_str!("../../../../docs/configuration.md");
        let section = text.split("### Listening").nth(1).and_then(|rest| rest.split("\n#").next());
        let rows = section.expect("it has a section about them").lines();
        let documented = rows.filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        assert!(documented.eq(OPTIONS.iter().map(|option| option.name)));
    }

    #[test]
    fn what_is_misspelt_or_not_offered_is_refused_by_name() {
        for (url, message) in [
            (
                "tcp://h:1?maximumConections=1",
                "`tcp://h:1` has the unknown option `maximumConections`; did you mean `maximumConnections`?",
            ),
            ("tcp://h:1?trace=true", "`tcp://h:1` has the unknown option `trace`"),
            (
                "tcp://h:1?wireFormat.tightEncodingEnabled=true",
                "`tcp://h:1`: option `wireFormat.tightEncodingEnabled` is `true`; expected `false`, as nothing else is offered yet",
            ),
            (
                "tcp://h:1?maximumConnections=1&maximumConnections=2",
                "`tcp://h:1` has the option `maximumConnections` twice; expected it once",
            ),
            (
                "tcp://h:1?wireFormat.maxFrameSize=-1",
                "`tcp://h:1`: option `wireFormat.maxFrameSize` is `-1`; expected a number of bytes from 65536 up",
            ),
            (
                "tcp://h:1?wireFormat.maxFrameSize=65535",
                "`tcp://h:1`: option `wireFormat.maxFrameSize` is `65535`; expected a number of bytes from 65536 up",
            ),
            (
                "tcp://h:1?maximumConnections=0",
                "`tcp://h:1`: option `maximumConnections` is `0`; expected a number of connections above 0",
            ),
            (
                "tpc://h:1?maximumConnections=1",
                "`tpc://h:1` is no address to listen on, as its scheme is `tpc`; did you mean `tcp://h:1`?",
            ),
            (
                "ssl://h:1",
                "`ssl://h:1` is no address to listen on, as its scheme is `ssl`; expected something like `tcp://127.0.0.1:61616`",
            ),
        ] {
            assert_eq!(ListenAddress::parse(url).unwrap_err().to_string(), message);
        }
        for url in ["", "tcp://", "tcp://h", "tcp://:1", "tcp://h:x", "h:1", "tcp://h:65536"] {
            assert!(matches!(ListenAddress::parse(url), Err(BindError::Address { .. })), "{url}");
        }
    }

    #[test]
    fn a_user_in_front_of_the_host_is_refused_and_never_shown() {
        for url in
            ["tcp://u:geheim@127.0.0.1:1?trace=true", "t_cp://u:geheim@h:1", "tcp://geheim@h", "u:geheim@h:1"]
        {
            let mut found = ListenAddress::mistakes(url);
            found.extend(ListenAddress::parse(url).err());
            assert_eq!(found.len(), 2, "{found:?}");
            for error in found {
                assert!(matches!(error, BindError::UserInfo { .. }), "{error}");
                let shown = format!("{error} {error:?}");
                assert!(shown.contains("***@") && !shown.contains("geheim"), "{shown}");
            }
        }
    }

    #[test]
    fn all_that_is_wrong_with_an_address_is_found_at_once() {
        let mistakes =
            |url| -> Vec<String> { ListenAddress::mistakes(url).iter().map(ToString::to_string).collect() };
        assert!(mistakes("tcp://127.0.0.1:0?maximumConnections=5").is_empty());
        assert!(mistakes("tcp://[::1]:0?wireFormat.maxFrameSize=65536").is_empty());
        // Whose address it is is asked for later.
        assert!(mistakes("tcp://broker.invalid:0").is_empty());
        let found = mistakes("tpc://h:1?maximumConnections=0&trace=true&wireFormat.maxFrameSize=1");
        assert_eq!(found.len(), 4, "{found:?}");
        let found = mistakes("tcp://0.0.0.0:1?maximumConnections=1&maximumConnections=2");
        assert!(found[0].contains("can be reached from other machines"), "{found:?}");
        assert!(found[1].contains("twice") && found.len() == 2, "{found:?}");
    }
}

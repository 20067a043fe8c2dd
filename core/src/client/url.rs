//! URLs of connection factories: `vm://local?jms.redeliveryPolicy.maximumRedeliveries=6`.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::destination::MAXIMUM_PREFETCH;
use crate::provider::Password;
use crate::redelivery::RedeliveryOverrides;
use crate::url_option::{UrlOption, UrlOptionError, flag, milliseconds, read_options};
use crate::user_info::without_user_info;

/// A URL, taken apart.
#[derive(Clone, Debug)]
pub(super) struct FactoryUrl {
    /// As it was written, without its options: they may hold a password.
    pub(super) address: String,
    /// The part before the first colon.
    pub(super) scheme: String,
    /// What stands behind `scheme:`, up to the options.
    pub(super) target: String,
    /// The options.
    pub(super) options: Options,
}

/// What the options of a URL set. The names are ActiveMQ's.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) client_id: Option<Arc<str>>,
    pub(super) user: Option<Arc<str>>,
    pub(super) password: Option<Password>,
    pub(super) queue_prefetch: Option<u32>,
    pub(super) topic_prefetch: Option<u32>,
    pub(super) durable_prefetch: Option<u32>,
    pub(super) browser_prefetch: Option<u32>,
    pub(super) bounded_extension: Option<bool>,
    pub(super) optimize_acknowledge: bool,
    pub(super) optimize_timeout: Option<Duration>,
    pub(super) optimize_interval: Option<Duration>,
    pub(super) send_timeout: Option<Duration>,
    pub(super) unstarted_warning: Option<Duration>,
    /// What the options of the policy, and `jms.nonBlockingRedelivery`, say; the broker's policy fills the rest.
    pub(super) redelivery: Option<RedeliveryOverrides>,
}

/// What is wrong with the URL of a connection factory.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlError {
    /// It has no scheme.
    #[error("`{url}` has no scheme; expected something like `vm://local`")]
    NoScheme {
        /// The URL.
        url: String,
    },
    /// It has a user in front of a host, where it would be shown with the URL.
    #[error(
        "`{url}` has a user in front of the host; expected the options `jms.userName` and `jms.password`, as in `tcp://HOST:PORT?jms.userName=USER&jms.password=PASSWORD`"
    )]
    UserInfo {
        /// The URL, without its options and with `***` for the user.
        url: String,
    },
    /// It names no broker.
    #[error("`{url}` names no broker; expected something like `vm://local`")]
    NoTarget {
        /// The URL.
        url: String,
    },
    /// One of its options is wrong.
    #[error(transparent)]
    Options(#[from] UrlOptionError),
}

const PASSWORD: &str = "jms.password";

const OPTIONS: &[UrlOption<Options>] = &[
    UrlOption {
        name: "jms.clientID",
        set: |options, value| text(value).map(|text| options.client_id = Some(text)),
    },
    UrlOption {
        name: "jms.userName",
        set: |options, value| text(value).map(|text| options.user = Some(text)),
    },
    UrlOption {
        name: PASSWORD,
        set: |options, value| text(value).map(|text| options.password = Some(Password(text))),
    },
    UrlOption {
        name: "jms.sendTimeout",
        set: |options, value| {
            let timeout = milliseconds(value)?;
            // As in ActiveMQ, zero leaves the bound to the broker.
            options.send_timeout = (!timeout.is_zero()).then_some(timeout);
            Ok(())
        },
    },
    UrlOption {
        name: "jms.warnAboutUnstartedConnectionTimeout",
        set: |options, value| milliseconds(value).map(|delay| options.unstarted_warning = Some(delay)),
    },
    UrlOption {
        name: "jms.prefetchPolicy.queuePrefetch",
        set: |options, value| prefetch(value).map(|prefetch| options.queue_prefetch = Some(prefetch)),
    },
    UrlOption {
        name: "jms.prefetchPolicy.topicPrefetch",
        set: |options, value| prefetch(value).map(|prefetch| options.topic_prefetch = Some(prefetch)),
    },
    UrlOption {
        name: "jms.prefetchPolicy.durableTopicPrefetch",
        set: |options, value| prefetch(value).map(|prefetch| options.durable_prefetch = Some(prefetch)),
    },
    UrlOption {
        name: "jms.prefetchPolicy.queueBrowserPrefetch",
        set: |options, value| prefetch(value).map(|prefetch| options.browser_prefetch = Some(prefetch)),
    },
    UrlOption {
        name: "jms.prefetchPolicy.all",
        set: |options, value| {
            let prefetch = prefetch(value)?;
            options.queue_prefetch = Some(prefetch);
            options.topic_prefetch = Some(prefetch);
            options.durable_prefetch = Some(prefetch);
            options.browser_prefetch = Some(prefetch);
            Ok(())
        },
    },
    // Of ours: what ActiveMQ has instead is in the policies of its broker, `usePrefetchExtension`.
    UrlOption {
        name: "jms.prefetchPolicy.boundedExtension",
        set: |options, value| flag(value).map(|flag| options.bounded_extension = Some(flag)),
    },
    UrlOption {
        name: "jms.optimizeAcknowledge",
        set: |options, value| flag(value).map(|flag| options.optimize_acknowledge = flag),
    },
    UrlOption {
        name: "jms.optimizeAcknowledgeTimeOut",
        set: |options, value| milliseconds(value).map(|time| options.optimize_timeout = Some(time)),
    },
    UrlOption {
        name: "jms.optimizedAckScheduledAckInterval",
        set: |options, value| milliseconds(value).map(|time| options.optimize_interval = Some(time)),
    },
    UrlOption {
        name: "jms.redeliveryPolicy.maximumRedeliveries",
        set: |options, value| {
            let maximum: i64 = value.parse().map_err(|_| "a number, -1 for no limit")?;
            policy(options).maximum_redeliveries = Some(match maximum {
                -1 => None,
                _ => Some(u32::try_from(maximum).map_err(|_| "a number, -1 for no limit")?),
            });
            Ok(())
        },
    },
    UrlOption {
        name: "jms.redeliveryPolicy.initialRedeliveryDelay",
        set: |options, value| milliseconds(value).map(|delay| policy(options).initial_delay = Some(delay)),
    },
    UrlOption {
        name: "jms.redeliveryPolicy.redeliveryDelay",
        set: |options, value| milliseconds(value).map(|delay| policy(options).delay = Some(delay)),
    },
    UrlOption {
        name: "jms.redeliveryPolicy.backOffMultiplier",
        set: |options, value| {
            let factor: f64 = value.parse().map_err(|_| "a number of at least 1")?;
            if !(factor >= 1.0 && factor.is_finite()) {
                return Err("a number of at least 1");
            }
            policy(options).back_off = Some(Some(factor));
            Ok(())
        },
    },
    UrlOption {
        name: "jms.redeliveryPolicy.maximumRedeliveryDelay",
        set: |options, value| {
            policy(options).maximum_delay =
                Some(if value == "-1" { None } else { Some(milliseconds(value)?) });
            Ok(())
        },
    },
    UrlOption {
        name: "jms.nonBlockingRedelivery",
        set: |options, value| {
            policy(options).non_blocking = Some(flag(value)?);
            Ok(())
        },
    },
];

fn policy(options: &mut Options) -> &mut RedeliveryOverrides {
    options.redelivery.get_or_insert_default()
}

fn text(value: &str) -> Result<Arc<str>, &'static str> {
    if value.is_empty() { Err("a text that is not empty") } else { Ok(value.into()) }
}

fn prefetch(value: &str) -> Result<u32, &'static str> {
    match value.parse() {
        Ok(prefetch @ 0..=MAXIMUM_PREFETCH) => Ok(prefetch),
        _ => Err("a number from 0 to 32767"),
    }
}

impl FactoryUrl {
    pub(super) fn parse(url: &str) -> Result<Self, UrlError> {
        // Before all else, as other errors show the URL.
        if let Some(url) = without_user_info(url) {
            return Err(UrlError::UserInfo { url });
        }
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let no_scheme = || UrlError::NoScheme { url: address.to_owned() };
        let (scheme, target) = address.split_once(':').ok_or_else(no_scheme)?;
        if scheme.is_empty() || !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+') {
            return Err(no_scheme());
        }
        if target.trim_matches('/').is_empty() {
            return Err(UrlError::NoTarget { url: address.to_owned() });
        }
        let mut options = Options::default();
        read_options(address, query, OPTIONS, &[PASSWORD], &mut options)?;
        Ok(Self {
            address: address.to_owned(),
            scheme: scheme.to_ascii_lowercase(),
            target: target.trim_start_matches("//").to_owned(),
            options,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redelivery::RedeliveryPolicy;

    #[test]
    fn options_are_read_with_their_activemq_names() {
        let url = FactoryUrl::parse(
            "vm://local?jms.redeliveryPolicy.maximumRedeliveries=-1&jms.redeliveryPolicy.redeliveryDelay=250\
             &jms.prefetchPolicy.all=7&jms.nonBlockingRedelivery=true&jms.clientID=a%20b",
        )
        .unwrap();
        assert_eq!((url.scheme.as_str(), url.target.as_str()), ("vm", "local"));
        let policy = url.options.redelivery.unwrap();
        let broker =
            RedeliveryPolicy { initial_delay: Duration::from_secs(9), ..RedeliveryPolicy::default() };
        let policy = policy.over(&broker);
        assert_eq!((policy.maximum_redeliveries, policy.delay), (None, Duration::from_millis(250)));
        assert!(policy.non_blocking);
        assert_eq!(
            policy.initial_delay,
            Duration::from_secs(9),
            "what the URL does not say stays the broker's"
        );
        assert_eq!((url.options.queue_prefetch, url.options.topic_prefetch), (Some(7), Some(7)));
        assert_eq!(url.options.client_id.as_deref(), Some("a b"));
        assert!(FactoryUrl::parse("vm://local").unwrap().options.redelivery.is_none());
    }

    #[test]
    fn the_documentation_has_a_row_for_every_option_and_no_other() {
        let text = include_str!("../../../docs/configuration.md");
        let rows = text.lines().filter_map(|line| line.strip_prefix("| `jms.")?.split('`').next());
        let documented: Vec<_> = rows.map(|name| format!("jms.{name}")).collect();
        assert_eq!(documented, OPTIONS.iter().map(|option| option.name).collect::<Vec<_>>());
    }

    #[test]
    fn a_misspelt_option_is_refused_with_the_nearest_name() {
        let error = FactoryUrl::parse("vm://local?jms.prefetchPolicy.queuePrefech=1").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`vm://local` has the unknown option `jms.prefetchPolicy.queuePrefech`; did you mean `jms.prefetchPolicy.queuePrefetch`?"
        );
        for option in ["broker.persistent", "jms.foo"] {
            let error = FactoryUrl::parse(&format!("vm://local?{option}=false")).unwrap_err();
            assert_eq!(error.to_string(), format!("`vm://local` has the unknown option `{option}`"));
        }
    }

    #[test]
    fn a_value_that_cannot_be_read_is_refused_by_name() {
        for (option, expected) in [
            ("jms.prefetchPolicy.queuePrefetch=-1", "a number from 0 to 32767"),
            ("jms.redeliveryPolicy.maximumRedeliveries=-2", "a number, -1 for no limit"),
            ("jms.redeliveryPolicy.backOffMultiplier=NaN", "a number of at least 1"),
            ("jms.sendTimeout=5s", "a number of milliseconds"),
            ("jms.nonBlockingRedelivery=yes", "`true` or `false`"),
            ("jms.password=", "a text that is not empty"),
        ] {
            let error = FactoryUrl::parse(&format!("vm://local?{option}")).unwrap_err().to_string();
            assert!(error.ends_with(&format!("expected {expected}")), "{error}");
        }
    }

    #[test]
    fn an_option_given_twice_or_with_a_broken_escape_is_refused() {
        let error = FactoryUrl::parse("vm://local?jms.clientID=a&jms.userName=u&jms.clientID=b").unwrap_err();
        assert_eq!(error.to_string(), "`vm://local` has the option `jms.clientID` twice; expected it once");
        for broken in ["%", "50%", "%zz", "%2", "%ff", "a%é9"] {
            let error =
                FactoryUrl::parse(&format!("vm://local?jms.password={broken}")).unwrap_err().to_string();
            assert!(error.contains("option `jms.password` is `***`; expected UTF-8 text"), "{error}");
        }
        let url = FactoryUrl::parse("vm://local?jms.clientID=50%25%C3%A9").unwrap();
        assert_eq!(url.options.client_id.as_deref(), Some("50%é"));
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for url in ["", "local", "://x", "v m://x"] {
            assert!(matches!(FactoryUrl::parse(url), Err(UrlError::NoScheme { .. })), "{url}");
        }
        for url in ["vm:", "vm://", "vm:///?jms.clientID=a"] {
            assert!(matches!(FactoryUrl::parse(url), Err(UrlError::NoTarget { .. })), "{url}");
        }
    }

    #[test]
    fn a_user_in_front_of_the_host_is_refused_and_never_shown() {
        for url in [
            "tcp://u:geheim@h:1?jms.foo=1",
            "vm://u:geheim@local",
            "t_cp://u:geheim@h:1",
            "tcp://u:geheim@h:1",
            "u:geheim@h:1",
            "failover:(tcp://u:geheim@h1:1,tcp://h2:1)",
        ] {
            let error = FactoryUrl::parse(url).unwrap_err();
            assert!(matches!(error, UrlError::UserInfo { .. }), "{url}");
            let shown = format!("{error} {error:?}");
            assert!(shown.contains("***@") && !shown.contains("geheim"), "{shown}");
        }
        let error = FactoryUrl::parse("tcp://u:geheim@h:1?jms.password=x").unwrap_err().to_string();
        assert!(
            error.starts_with(
                "`tcp://***@h:1` has a user in front of the host; expected the options `jms.userName` and `jms.password`, as in"
            ),
            "{error}"
        );
        let url = FactoryUrl::parse("tcp://h:1?jms.userName=a@b").unwrap();
        assert_eq!(url.options.user.as_deref(), Some("a@b"));
    }

    #[test]
    fn a_password_is_never_shown() {
        let url = FactoryUrl::parse("tcp://h:1?jms.password=geheim").unwrap();
        assert!(!format!("{url:?}").contains("geheim"));
        let error = FactoryUrl::parse("tcp://h:1?jms.password=geheim&x=1").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("geheim"));
    }
}

//! `[connection_factories.NAME]`.

use std::borrow::Cow;
use std::time::Duration;

use linkme::distributed_slice;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::super::error::ConfigError;
use super::super::reading::{Reading, Setting, TableReader};
use super::super::schema::{KeySchema, Kind, Shape, TABLES, TableSchema};
use super::super::value;
use super::Named;

/// The highest that a URL takes too.
const MAXIMUM_PREFETCH: u32 = 32_767;
const PREFETCH: Kind = Kind::Number { least: 0, most: MAXIMUM_PREFETCH as i64 };

#[expect(unsafe_code, reason = "linkme names a link section")]
#[distributed_slice(TABLES)]
static SCHEMA: TableSchema = TableSchema {
    name: "connection_factories",
    shape: Shape::Named,
    meaning: "A way to a broker, which is a bean of this name.",
    keys: &[
        KeySchema::new(
            "url",
            Kind::Text("the URL of a broker, such as \"vm://local\""),
            "The broker: `vm://NAME` within this process, `tcp://HOST:PORT` elsewhere. Options may follow it.",
        )
        .answers("`spring.activemq.broker-url`")
        .required(),
        KeySchema::new("user", NOT_EMPTY, "Who connects.")
            .answers("`spring.activemq.user`, `jms.userName`"),
        KeySchema::new("password", NOT_EMPTY, "Their password.")
            .answers("`spring.activemq.password`, `jms.password`"),
        KeySchema::new(
            "client_id",
            NOT_EMPTY,
            "The name of its connections at the broker, of which there can be one at a time.",
        )
        .answers("`spring.jms.client-id`, `jms.clientID`"),
        KeySchema::new(
            "send_timeout",
            Kind::Duration { may_be_zero: false },
            "How long a send may wait for room at the broker before it fails; without it the broker's `send_deadline`.",
        )
        .answers("`spring.activemq.send-timeout`, `jms.sendTimeout`"),
        KeySchema::new(
            "prefetch",
            Kind::Table(&[
                KeySchema::new(
                    "queue",
                    PREFETCH,
                    "Messages that a consumer of a queue may have ahead; `0` fetches each when it is asked for. Listeners \
                     have a `prefetch` of their own.",
                )
                .default("100")
                .activemq("1000")
                .answers("`jms.prefetchPolicy.queuePrefetch`"),
                KeySchema::new("topic", PREFETCH, "The same for consumers of topics.")
                    .default("1000")
                    .activemq("32766")
                    .answers("`jms.prefetchPolicy.topicPrefetch`"),
                KeySchema::new("durable", PREFETCH, "The same for consumers of durable subscriptions.")
                    .default("100")
                    .answers("`jms.prefetchPolicy.durableTopicPrefetch`"),
                KeySchema::new(
                    "browser",
                    Kind::Number { least: 1, most: MAXIMUM_PREFETCH as i64 },
                    "Messages that a browser is shown ahead.",
                )
                .default("500")
                .answers("`jms.prefetchPolicy.queueBrowserPrefetch`"),
                KeySchema::new(
                    "bounded_extension",
                    Kind::Boolean,
                    "Whether messages that were handed over and are not acknowledged yet make room for at most half of the \
                     prefetch beside it, where a session acknowledges later; `false`: for as many as there are.",
                )
                .default("true")
                .activemq("false")
                .answers("`usePrefetchExtension` of a `policyEntry`"),
            ]),
            "How far a broker may send ahead to consumers.",
        ),
        KeySchema::new(
            "optimize_acknowledge",
            Kind::Boolean,
            "Whether sessions that acknowledge by themselves tell the broker of many messages at once. What they have not told \
             of comes again if the process dies.",
        )
        .default("false")
        .answers("`jms.optimizeAcknowledge`"),
    ],
};

/// The option of a URL that says all prefetches.
const ALL_PREFETCH: &str = "jms.prefetchPolicy.all";
const NOT_EMPTY: Kind = Kind::Text("a text that is not empty");

/// `[connection_factories.NAME]`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionFactoryTable {
    /// The broker's URL with the factory's options.
    pub url: Setting<String>,
    /// Who connects.
    pub user: Option<Setting<String>>,
    /// Their password.
    pub password: Option<Setting<String>>,
    /// The name of its connections at the broker.
    pub client_id: Option<Setting<String>>,
    /// How long a send may wait for room at the broker.
    pub send_timeout: Option<Duration>,
    /// Messages that a consumer of a queue may have ahead.
    pub queue_prefetch: Option<u32>,
    /// Messages that a consumer of a topic may have ahead.
    pub topic_prefetch: Option<u32>,
    /// Messages that a consumer of a durable subscription may have ahead.
    pub durable_prefetch: Option<u32>,
    /// Messages that a browser is shown ahead.
    pub browser_prefetch: Option<u32>,
    /// Whether what was handed over widens the window of a consumer by a bounded number only.
    pub bounded_extension: Option<bool>,
    /// Whether sessions that acknowledge by themselves tell of many messages at once.
    pub optimize_acknowledge: Option<bool>,
}

impl ConnectionFactoryTable {
    pub(super) fn read(reading: &Reading<'_>) -> Named<Self> {
        let tables = reading.named("connection_factories").into_iter();
        tables.filter_map(|(name, table)| Some((name.to_owned(), Self::of(&table)?))).collect()
    }

    fn of(table: &TableReader<'_>) -> Option<Self> {
        let url = table.required("url", value::text);
        let not_empty = |key| table.setting(key, |value| value::text(value).filter(|text| !text.is_empty()));
        let user = not_empty("user");
        let password = not_empty("password");
        let client_id = not_empty("client_id");
        let send_timeout =
            table.value("send_timeout", |value| value::duration(value).filter(|timeout| !timeout.is_zero()));
        let prefetch = table.table("prefetch");
        let prefetch = prefetch.as_ref();
        let count = |value: &_| value::count(value).filter(|count| *count <= MAXIMUM_PREFETCH);
        let read = Self {
            url: url?,
            user,
            password,
            client_id,
            send_timeout,
            queue_prefetch: prefetch.and_then(|table| table.value("queue", count)),
            topic_prefetch: prefetch.and_then(|table| table.value("topic", count)),
            durable_prefetch: prefetch.and_then(|table| table.value("durable", count)),
            browser_prefetch: prefetch
                .and_then(|table| table.value("browser", |value| count(value).filter(|count| *count > 0))),
            bounded_extension: prefetch.and_then(|table| table.value("bounded_extension", value::boolean)),
            optimize_acknowledge: table.value("optimize_acknowledge", value::boolean),
        };
        read.refuse_twice(table, prefetch);
        Some(read)
    }

    /// The URL, with what the other keys say among its options.
    pub(crate) fn url_with_options(&self) -> Cow<'_, str> {
        let said = self.said();
        if said.is_empty() {
            return Cow::Borrowed(&self.url.value);
        }
        let mut url = self.url.value.clone();
        for Said { option, value, .. } in said {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.push_str(&format!("{option}={}", utf8_percent_encode(&value, NON_ALPHANUMERIC)));
        }
        Cow::Owned(url)
    }

    /// What the keys beside the URL say.
    fn said(&self) -> Vec<Said> {
        let text = |setting: &Option<Setting<String>>| setting.as_ref().map(|setting| setting.value.clone());
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        let timeout = self.send_timeout.map(|timeout| timeout.as_millis().to_string());
        let flag = |flag: Option<bool>| flag.map(|flag| flag.to_string());
        [
            (false, "user", "jms.userName", text(&self.user)),
            (false, "password", "jms.password", text(&self.password)),
            (false, "client_id", "jms.clientID", text(&self.client_id)),
            (false, "send_timeout", "jms.sendTimeout", timeout),
            (true, "queue", "jms.prefetchPolicy.queuePrefetch", number(self.queue_prefetch)),
            (true, "topic", "jms.prefetchPolicy.topicPrefetch", number(self.topic_prefetch)),
            (true, "durable", "jms.prefetchPolicy.durableTopicPrefetch", number(self.durable_prefetch)),
            (true, "browser", "jms.prefetchPolicy.queueBrowserPrefetch", number(self.browser_prefetch)),
            (true, "bounded_extension", "jms.prefetchPolicy.boundedExtension", flag(self.bounded_extension)),
            (false, "optimize_acknowledge", "jms.optimizeAcknowledge", flag(self.optimize_acknowledge)),
        ]
        .into_iter()
        .filter_map(|(is_prefetch, key, option, value)| {
            Some(Said { is_prefetch, key, option, value: value? })
        })
        .collect()
    }

    /// Refuses what both the URL and a key say.
    fn refuse_twice(&self, table: &TableReader<'_>, prefetch: Option<&TableReader<'_>>) {
        let (_, query) = self.url.value.split_once('?').unwrap_or_default();
        let in_url: Vec<_> = query.split('&').filter_map(|option| option.split('=').next()).collect();
        for Said { is_prefetch, key, option, .. } in self.said() {
            let all = option.ends_with("Prefetch").then_some(ALL_PREFETCH);
            let same = [Some(option), all];
            let Some(option) = same.into_iter().flatten().find(|option| in_url.contains(option)) else {
                continue;
            };
            table.problem(ConfigError::Value {
                place: prefetch.filter(|_| is_prefetch).unwrap_or(table).place(key),
                found: format!("a second value beside the option `{option}` of {}", self.url.place),
                expected: "one of the two".to_owned(),
            });
        }
    }
}

/// What a key beside the URL says.
struct Said {
    /// Whether the key is in the table `prefetch`.
    is_prefetch: bool,
    key: &'static str,
    /// The option of the URL that says the same.
    option: &'static str,
    value: String,
}

//! What stands in the parentheses of `#[jms_listener(…)]`.

use darling::ast::NestedMeta;
use darling::util::SpannedValue;
use darling::{Error, FromMeta, Result};
use proc_macro2::TokenStream;
use syn::{Expr, ExprLit, Lit, Meta};

use super::acknowledge::Acknowledge;
use super::concurrency::Concurrency;

/// One attribute, checked.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    pub(super) destination: Destination,
    pub(super) subscription: Option<String>,
    pub(super) client_id: Option<String>,
    pub(super) acknowledge: Option<Acknowledge>,
    pub(super) concurrency: Option<Concurrency>,
    pub(super) send_to: Option<String>,
    pub(super) container: Option<String>,
    pub(super) id: Option<SpannedValue<String>>,
}

#[derive(Clone, Debug)]
pub(super) enum Destination {
    Queue(String),
    Topic(String),
}

/// Keys that the framework is going to have. Taking one and doing nothing would be worse than refusing it.
const NOT_AVAILABLE_YET: &[&str] = &[
    "selector",
    "shared",
    "no_local",
    "converter",
    "reply_to",
    "reply_options",
    "connection_factory",
    "prefetch",
    "exclusive",
    "batch",
    "auto_start",
    "shutdown_timeout",
    "redelivery",
    "error_handler",
];

/// The keys that there are.
const KEYS: &[&str] =
    &["queue", "topic", "subscription", "client_id", "ack", "concurrency", "send_to", "id", "container"];

#[derive(FromMeta)]
struct Keys {
    queue: Option<SpannedValue<String>>,
    topic: Option<SpannedValue<String>>,
    subscription: Option<SpannedValue<String>>,
    client_id: Option<SpannedValue<String>>,
    ack: Option<Acknowledge>,
    concurrency: Option<SpannedValue<Concurrency>>,
    send_to: Option<SpannedValue<String>>,
    id: Option<SpannedValue<String>>,
    container: Option<SpannedValue<String>>,
}

impl Listener {
    /// Reads one attribute's arguments and reports everything that is wrong with them.
    pub(super) fn read(arguments: TokenStream) -> Result<Self> {
        let mut errors = Error::accumulator();
        let mut items = NestedMeta::parse_meta_list(arguments)?;
        let says_destination = items.iter().any(is_destination);
        items.retain(|item| match not_available_yet(item).or_else(|| misshapen(item)) {
            Some(error) => {
                errors.push(error);
                false
            }
            None => true,
        });
        let keys = errors.handle(Keys::from_list(&items));
        let destination = keys.as_ref().and_then(|keys| {
            // A destination that is there and cannot be read was reported already.
            let is_missing = keys.queue.is_none() && keys.topic.is_none();
            if is_missing && says_destination { None } else { errors.handle(keys.destination()) }
        });
        if let Some(keys) = &keys {
            for (name, value) in [
                ("subscription", &keys.subscription),
                ("client_id", &keys.client_id),
                ("send_to", &keys.send_to),
                ("id", &keys.id),
                ("container", &keys.container),
            ] {
                errors.handle(not_empty(name, value.as_ref()));
            }
            errors.handle(keys.subscription_to_a_topic());
            errors.handle(keys.one_worker_for_a_topic());
        }
        errors.finish()?;
        let (Some(keys), Some(destination)) = (keys, destination) else {
            return Err(Error::custom("the attribute cannot be read"));
        };
        Ok(Self {
            destination,
            subscription: keys.subscription.map(SpannedValue::into_inner),
            client_id: keys.client_id.map(SpannedValue::into_inner),
            acknowledge: keys.ack,
            concurrency: keys.concurrency.map(SpannedValue::into_inner),
            send_to: keys.send_to.map(SpannedValue::into_inner),
            container: keys.container.map(SpannedValue::into_inner),
            id: keys.id,
        })
    }
}

impl Keys {
    fn destination(&self) -> Result<Destination> {
        match (&self.queue, &self.topic) {
            (Some(queue), None) => {
                not_empty("queue", Some(queue))?;
                no_scheme(queue, "topic://")?;
                Ok(Destination::Queue(queue.as_ref().clone()))
            }
            (None, Some(topic)) => {
                not_empty("topic", Some(topic))?;
                no_scheme(topic, "queue://")?;
                Ok(Destination::Topic(topic.as_ref().clone()))
            }
            (Some(_), Some(topic)) => {
                Err(Error::custom("a listener has one destination; expected either `queue` or `topic`")
                    .with_span(&topic.span()))
            }
            (None, None) => Err(Error::custom(
                "the listener has no destination; expected `queue = \"…\"` or `topic = \"…\"`",
            )),
        }
    }

    /// Whether the attribute or the configuration names the subscription, a client id in the attribute is none of a queue's.
    fn subscription_to_a_topic(&self) -> Result<()> {
        match (&self.queue, &self.subscription, &self.client_id) {
            (Some(_), Some(subscription), _) => Err(Error::custom(
                "a durable subscription is to a topic; expected `topic = \"…\"` beside it",
            )
            .with_span(&subscription.span())),
            (Some(_), None, Some(client_id)) => Err(Error::custom(
                "only a durable subscription needs a client id; expected `topic = \"…\"` and `subscription = \"…\"` beside it",
            )
            .with_span(&client_id.span())),
            _ => Ok(()),
        }
    }

    fn one_worker_for_a_topic(&self) -> Result<()> {
        match (&self.topic, &self.concurrency) {
            (Some(_), Some(concurrency)) if concurrency.upper > 1 => Err(Error::custom(
                "a topic listener has exactly one worker, as each would get every message; expected \"1\"",
            )
            .with_span(&concurrency.span())),
            _ => Ok(()),
        }
    }
}

/// Where several attributes share a function, each listener needs a name of its own.
pub(super) fn check_ids(listeners: &[Listener]) -> Result<()> {
    let mut errors = Error::accumulator();
    let mut constants = vec!["DEFS".to_owned()];
    for listener in listeners {
        let Some(id) = &listener.id else {
            errors.push(Error::custom(
                "the function has several `#[jms_listener]` attributes; each of them needs an `id = \"…\"`",
            ));
            continue;
        };
        let constant = constant_name(id);
        if constants.contains(&constant) {
            errors.push(
                Error::custom(format!(
                    "the id does not name this listener alone: its constant `{constant}` is taken"
                ))
                .with_span(&id.span()),
            );
        }
        constants.push(constant);
    }
    errors.finish()
}

/// The constant beside the function that a listener has by its id.
pub(super) fn constant_name(id: &str) -> String {
    let start = if id.starts_with(|first: char| first.is_ascii_digit()) { "_" } else { "" };
    let letters = id
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' });
    start.chars().chain(letters).collect()
}

fn is_destination(item: &NestedMeta) -> bool {
    matches!(item, NestedMeta::Meta(meta) if meta.path().is_ident("queue") || meta.path().is_ident("topic"))
}

fn not_available_yet(item: &NestedMeta) -> Option<Error> {
    let NestedMeta::Meta(meta) = item else { return None };
    let key = meta.path().get_ident()?.to_string();
    if key == "durable" {
        let text = "there is no key `durable`; a listener to a topic with `subscription = \"…\"` has a durable subscription";
        return Some(Error::custom(text).with_span(meta.path()));
    }
    NOT_AVAILABLE_YET
        .contains(&key.as_str())
        .then(|| Error::custom(format!("`{key}` is not available yet")).with_span(meta.path()))
}

/// Says how a key is written, which the reading of its value could not say.
fn misshapen(item: &NestedMeta) -> Option<Error> {
    let NestedMeta::Meta(meta) = item else {
        return Some(Error::custom("expected a key and its value, such as `queue = \"…\"`").with_span(item));
    };
    let key = meta.path().get_ident().filter(|key| KEYS.iter().any(|known| key == known))?;
    let is_text = |value: &Expr| matches!(value, Expr::Lit(ExprLit { lit: Lit::Str(_), .. }));
    match meta {
        Meta::NameValue(pair) if is_text(&pair.value) => None,
        Meta::NameValue(pair) => Some(
            Error::custom(format!("`{key}` takes text; expected `{key} = \"…\"`")).with_span(&pair.value),
        ),
        Meta::Path(_) | Meta::List(_) => {
            Some(Error::custom(format!("`{key}` needs a value; expected `{key} = \"…\"`")).with_span(meta))
        }
    }
}

fn not_empty(name: &str, value: Option<&SpannedValue<String>>) -> Result<()> {
    match value {
        Some(value) if value.trim().is_empty() => {
            Err(Error::custom(format!("`{name}` is empty; expected a name")).with_span(&value.span()))
        }
        _ => Ok(()),
    }
}

fn no_scheme(value: &SpannedValue<String>, scheme: &str) -> Result<()> {
    if value.starts_with(scheme) {
        let key = scheme.trim_end_matches("://");
        return Err(Error::custom(format!("`{scheme}…` is a {key}; expected `{key} = \"…\"`"))
            .with_span(&value.span()));
    }
    Ok(())
}

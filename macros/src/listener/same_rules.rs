//! What an attribute takes, `[listeners.ID]` takes too, and refuses with the same words.

use std::fmt::{Debug, Display};

use corriere_container::listener::{
    Acknowledge as ContainerAcknowledge, Concurrency as ContainerConcurrency,
};
use darling::FromMeta;

use super::acknowledge::Acknowledge;
use super::concurrency::Concurrency;

/// What the attribute's parser and the configuration's say of a text, both as text.
fn both<Ours: FromMeta, Theirs>(text: &str, ours: fn(Ours) -> String) -> [Result<String, String>; 2]
where
    Theirs: std::str::FromStr<Err: Display> + Display,
{
    [
        Ours::from_string(text).map(ours).map_err(|error| error.to_string()),
        text.parse::<Theirs>().map(|theirs| theirs.to_string()).map_err(|error| error.to_string()),
    ]
}

fn check<Ours: FromMeta, Theirs>(accepted: &[&str], refused: &[&str], ours: fn(Ours) -> String)
where
    Theirs: std::str::FromStr<Err: Display> + Display + Debug,
{
    for (texts, is_accepted) in [(accepted, true), (refused, false)] {
        for text in texts {
            let [attribute, configuration] = both::<Ours, Theirs>(text, ours);
            assert_eq!(attribute, configuration, "{text:?}");
            assert_eq!(attribute.is_ok(), is_accepted, "{text:?}: {attribute:?}");
        }
    }
}

#[test]
fn the_attribute_and_the_configuration_take_the_same_concurrencies() {
    check::<Concurrency, ContainerConcurrency>(
        &["1", "8", "2-8", "3-3", "007", "1-18446744073709551615"],
        &[
            "",
            "-",
            "5-",
            "-5",
            "a",
            "1-2-3",
            "+2",
            " 2",
            "2 - 4",
            "0",
            "0-3",
            "0-0",
            "5-3",
            "1.5",
            "1_000",
            "٣",
            "18446744073709551616",
            "1–2",
        ],
        |ours| format!("{}-{}", ours.lower, ours.upper),
    );
}

#[test]
fn the_attribute_and_the_configuration_take_the_same_acknowledge_modes() {
    check::<Acknowledge, ContainerAcknowledge>(
        &["auto", "client", "dups_ok", "individual", "transacted", "manual"],
        &["", "Auto", "AUTO", " auto", "dupsok", "dups-ok", "session", "none"],
        |ours| match ours {
            Acknowledge::DupsOk => "dups_ok".to_owned(),
            other => format!("{other:?}").to_lowercase(),
        },
    );
}

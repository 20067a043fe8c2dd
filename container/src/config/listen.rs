//! What is wrong with an address that the embedded broker should listen on.

use corriere_core::url_option::UrlOptionError;
use corriere_openwire::acceptor::{BindError, why_not_listening};

use super::Place;

/// Why an address is not listened on, to follow its key.
pub(crate) fn why_not_listened_on(place: &Place, error: &BindError) -> String {
    match place.hidden() {
        None => format!(": {error}"),
        Some(hidden) => format!(" is {hidden}; {}", refusal_unseen(error)),
    }
}

/// What is wrong with an address, without anything that stands in it.
fn refusal_unseen(error: &BindError) -> String {
    match error {
        BindError::Scheme { nearest: Some(nearest), .. } => {
            format!("an address has a scheme that is not listened on; did you mean `{nearest}`?")
        }
        BindError::Options(error) => option_unseen(error),
        BindError::NotLoopback { .. } => {
            "an address can be reached from other machines, and this broker has no users yet; expected a loopback \
             address such as `tcp://127.0.0.1:61616`"
                .to_owned()
        }
        BindError::Io { error, .. } => format!("cannot listen there: {}", why_not_listening(error)),
        _ => "expected addresses such as `tcp://127.0.0.1:61616`".to_owned(),
    }
}

fn option_unseen(error: &UrlOptionError) -> String {
    match error {
        UrlOptionError::Unknown { nearest: Some(nearest), .. } => {
            format!("an address has an unknown option; did you mean `{nearest}`?")
        }
        UrlOptionError::Twice { option, .. } => {
            format!("an address has the option `{option}` twice; expected it once")
        }
        UrlOptionError::Value { option, expected, .. } => format!("option `{option}` should be {expected}"),
        _ => "an address has an unknown option".to_owned(),
    }
}

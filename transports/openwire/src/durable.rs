//! What is said of durable subscriptions that are refused: in ActiveMQ's words, by which programs tell them apart, and behind
//! those what helps more, which our own client reads back.

use corriere_core::provider::ProviderError;

use crate::codec::structures::JavaException;

const IN_USE: &str = "Durable consumer is in use";
const HOLDER: &str = "; it is used by ";
const UNKNOWN: &str = "No durable subscription exists for: ";
const NEAREST: &str = "; did you mean `";

/// The class and the words for a refusal; `None` for one that says nothing of durable subscriptions.
pub(crate) fn to_exception(error: &ProviderError) -> Option<(JavaException, String)> {
    match error {
        ProviderError::SubscriptionInUse { name, client_id, holder } => Some((
            JavaException::Jms,
            format!("{IN_USE} for client: {client_id} and subscriptionName: {name}{HOLDER}{holder}"),
        )),
        ProviderError::UnknownSubscription { name, client_id: _, nearest } => {
            let nearest = nearest.as_ref().map(|nearest| format!("{NEAREST}{nearest}`?"));
            let words = format!("{UNKNOWN}{name}{}", nearest.unwrap_or_default());
            Some((JavaException::InvalidDestination, words))
        }
        ProviderError::NoClientId { .. } => Some((JavaException::IllegalState, error.to_string())),
        _ => None,
    }
}

/// What words of a peer say of the durable subscription `name` of `client_id`; `None` when they say something else.
pub(crate) fn from_words(words: &str, name: &str, client_id: &str) -> Option<ProviderError> {
    let (name, client_id) = (name.to_owned(), client_id.to_owned());
    if words.starts_with(IN_USE) {
        let holder = words.rsplit_once(HOLDER).map_or("another consumer", |(_, holder)| holder).to_owned();
        return Some(ProviderError::SubscriptionInUse { name, client_id, holder });
    }
    let rest = words.strip_prefix(UNKNOWN)?;
    let nearest = rest.rsplit_once(NEAREST).and_then(|(_, nearest)| nearest.strip_suffix("`?"));
    Some(ProviderError::UnknownSubscription { name, client_id, nearest: nearest.map(str::to_owned) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_comes_back_from_its_words() {
        let (name, client_id) = ("audit".to_owned(), "billing".to_owned());
        let in_use = ProviderError::SubscriptionInUse {
            name: name.clone(),
            client_id: client_id.clone(),
            holder: "connection ID:a".to_owned(),
        };
        let unknown = |nearest: Option<&str>| ProviderError::UnknownSubscription {
            name: name.clone(),
            client_id: client_id.clone(),
            nearest: nearest.map(str::to_owned),
        };
        for error in [in_use, unknown(None), unknown(Some("audits"))] {
            let (_, words) = to_exception(&error).unwrap();
            assert_eq!(from_words(&words, &name, &client_id), Some(error));
        }
        assert_eq!(from_words("no luck", &name, &client_id), None);
        assert_eq!(to_exception(&ProviderError::Lost), None);
    }

    #[test]
    fn activemqs_own_words_are_understood() {
        let words = "Durable consumer is in use for client: billing and subscriptionName: audit";
        for words in [words, "Durable consumer is in use"] {
            let error = from_words(words, "audit", "billing").unwrap();
            assert!(
                matches!(&error, ProviderError::SubscriptionInUse { holder, .. } if holder == "another consumer")
            );
        }
        let error = from_words("No durable subscription exists for: audit", "audit", "billing");
        assert!(matches!(error, Some(ProviderError::UnknownSubscription { nearest: None, .. })));
    }
}

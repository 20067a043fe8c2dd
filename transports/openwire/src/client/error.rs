//! What a peer's exception means (OpenWire, section 3).

use std::sync::Arc;

use corriere_core::provider::ProviderError;

use crate::codec::structures::{JavaException, Throwable};
use crate::durable;

/// What a command was about that the peer answers.
#[derive(Clone, Debug)]
pub(super) enum About {
    /// The connection itself, under this client id.
    Connection(Arc<str>),
    /// A message to a destination.
    Send { message_id: String, destination: String },
    /// A destination to consume from, to make or to remove.
    Destination(String),
    /// A durable subscription of a client.
    Durable { name: Arc<str>, client_id: Arc<str>, destination: Option<String> },
    /// A transaction.
    Transaction(String),
    /// Anything else.
    Other,
}

const STOPPED: &str = "org.apache.activemq.broker.BrokerStoppedException";
const NO_DESTINATION: &str = "org.apache.activemq.DestinationDoesNotExistException";

/// What `peer` refuses a command with.
pub(super) fn refusal(exception: Option<Throwable>, about: &About, peer: &str) -> ProviderError {
    let throwable = exception.unwrap_or_default();
    let kind = throwable.exception();
    let Throwable { class, message, .. } = throwable;
    let reason = message.as_deref().unwrap_or("the peer gives no reason").to_owned();
    if let About::Durable { name, client_id, .. } = about
        && let Some(refused) = durable::from_words(&reason, name, client_id)
    {
        return refused;
    }
    match (kind, about) {
        _ if &*class == STOPPED => ProviderError::Stopped { broker: peer.to_owned(), reason },
        (Some(JavaException::InvalidClientId), About::Connection(client_id)) => {
            let said = ["connected from ", "is in use by "].into_iter();
            let mut holders = said.filter_map(|words| Some(reason.rsplit_once(words)?.1));
            let holder = holders.next().unwrap_or(&reason);
            ProviderError::ClientIdInUse { client_id: client_id.to_string(), holder: holder.to_owned() }
        }
        (Some(JavaException::ResourceAllocation), About::Send { message_id, destination }) => {
            ProviderError::NoRoom { message_id: message_id.clone(), destination: destination.clone(), reason }
        }
        (
            Some(JavaException::InvalidDestination),
            About::Destination(destination)
            | About::Send { destination, .. }
            | About::Durable { destination: Some(destination), .. },
        ) => ProviderError::InvalidDestination { destination: destination.clone(), reason },
        (_, About::Destination(destination) | About::Send { destination, .. })
            if &*class == NO_DESTINATION =>
        {
            ProviderError::InvalidDestination { destination: destination.clone(), reason }
        }
        // ActiveMQ says it in the words of XA, of local transactions too.
        (Some(JavaException::TransactionRolledBack | JavaException::Xa), About::Transaction(transaction)) => {
            ProviderError::RolledBack { transaction: transaction.clone(), reason }
        }
        _ => ProviderError::Refused { exception: class.to_string(), reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(class: &str, message: &str, about: &About) -> ProviderError {
        let exception =
            Throwable { class: class.into(), message: Some(message.into()), ..Throwable::default() };
        refusal(Some(exception), about, "tcp://b:1")
    }

    #[test]
    fn classes_that_are_known_become_what_they_mean() {
        let about = About::Connection("shop".into());
        let message = "Broker: b - Client: shop already connected from tcp://127.0.0.1:5";
        assert_eq!(
            of("jakarta.jms.InvalidClientIDException", message, &about),
            ProviderError::ClientIdInUse {
                client_id: "shop".to_owned(),
                holder: "tcp://127.0.0.1:5".to_owned()
            }
        );
        let message = "client id `shop` is in use by connection ID:a";
        let of_ours = of("javax.jms.InvalidClientIDException", message, &about);
        assert_eq!(of_ours.to_string(), message);
        let durable = About::Durable { name: "audit".into(), client_id: "shop".into(), destination: None };
        let in_use = of("javax.jms.JMSException", "Durable consumer is in use", &durable);
        assert!(matches!(in_use, ProviderError::SubscriptionInUse { .. }), "{in_use}");
        let send = About::Send { message_id: "ID:a:1".to_owned(), destination: "queue://q".to_owned() };
        assert!(of("javax.jms.ResourceAllocationException", "full", &send).lacks_room());
        for class in ["javax.jms.InvalidDestinationException", NO_DESTINATION] {
            let error = of(class, "gone", &send);
            assert!(matches!(error, ProviderError::InvalidDestination { .. }), "{error}");
        }
        let rolled_back =
            of("javax.jms.TransactionRolledBackException", "no", &About::Transaction("TX:1".to_owned()));
        assert!(matches!(rolled_back, ProviderError::RolledBack { .. }));
        assert!(of(STOPPED, "is being stopped", &About::Other).ends_connection());
    }

    #[test]
    fn an_unknown_class_keeps_its_name_and_its_words() {
        let error = of("com.example.Odd", "because", &About::Other);
        assert_eq!(error.to_string(), "the broker refuses it: because (com.example.Odd)");
        let silent = refusal(None, &About::Other, "tcp://b:1");
        assert!(silent.to_string().contains("gives no reason"), "{silent}");
    }
}

//! What the names of destinations in code and configuration stand for.

use std::error::Error;

use corriere_core::{Destination, DestinationError};
use corriere_templates::DestinationResolver;

use crate::nearest::nearest;

/// The destinations of an application, by the names that its code uses.
///
/// With a table `[destinations]`, a name is one of its keys, or `queue://NAME` or `topic://NAME`. Without one a bare
/// name stands for itself.
#[derive(Clone, Debug, Default)]
pub struct Destinations {
    table: Option<Vec<(String, Destination)>>,
}

impl Destinations {
    /// The destinations of a table, in its order.
    #[must_use]
    pub fn of_table(table: Vec<(String, Destination)>) -> Self {
        Self { table: Some(table) }
    }

    /// The keys of the table with what they stand for; `None` without a table.
    #[must_use]
    pub fn table(&self) -> Option<&[(String, Destination)]> {
        self.table.as_deref()
    }

    /// What a name stands for where the place does not say whether it is a queue or a topic: a bare name that is in no
    /// table is a queue.
    ///
    /// # Errors
    /// See [`UnknownDestination`].
    pub fn resolve(&self, name: &str) -> Result<Destination, UnknownDestination> {
        match self.listed(name)? {
            Some(destination) => Ok(destination),
            None => Ok(Destination::queue(name)?),
        }
    }

    /// What a name stands for where a queue is meant.
    ///
    /// # Errors
    /// See [`UnknownDestination`].
    pub fn queue(&self, name: &str) -> Result<Destination, UnknownDestination> {
        match self.listed(name)? {
            Some(destination) if destination.is_topic() => Err(UnknownDestination::OtherKind {
                name: name.to_owned(),
                found: destination,
                wanted: "queue",
            }),
            Some(destination) => Ok(destination),
            None => Ok(Destination::queue(name)?),
        }
    }

    /// What a name stands for where a topic is meant.
    ///
    /// # Errors
    /// See [`UnknownDestination`].
    pub fn topic(&self, name: &str) -> Result<Destination, UnknownDestination> {
        match self.listed(name)? {
            Some(destination) if !destination.is_topic() => Err(UnknownDestination::OtherKind {
                name: name.to_owned(),
                found: destination,
                wanted: "topic",
            }),
            Some(destination) => Ok(destination),
            None => Ok(Destination::topic(name)?),
        }
    }

    /// The destination of a name that says itself what it is, by a scheme or as a key of the table; `None` for a bare
    /// name where there is no table.
    fn listed(&self, name: &str) -> Result<Option<Destination>, UnknownDestination> {
        if let Some(name) = name.strip_prefix("queue://") {
            return Ok(Some(Destination::queue(name)?));
        }
        if let Some(name) = name.strip_prefix("topic://") {
            return Ok(Some(Destination::topic(name)?));
        }
        let Some(table) = &self.table else { return Ok(None) };
        match table.iter().find(|(key, _)| key == name) {
            Some((_, destination)) => Ok(Some(destination.clone())),
            None => Err(UnknownDestination::NotListed {
                name: name.to_owned(),
                known: table.iter().map(|(key, _)| key.clone()).collect(),
                nearest: nearest(name, table.iter().map(|(key, _)| key.as_str())),
            }),
        }
    }
}

impl DestinationResolver for Destinations {
    fn resolve(&self, name: &str) -> Result<Destination, Box<dyn Error + Send + Sync>> {
        Ok(self.resolve(name)?)
    }
}

/// Why a name stands for no destination.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnknownDestination {
    /// It is no key of the table.
    #[error(
        "`[destinations]` has no key `{name}`{}; it has {}; beside these, `queue://NAME` and `topic://NAME` can be used",
        nearest.as_ref().map(|nearest| format!(", did you mean `{nearest}`?")).unwrap_or_default(),
        if known.is_empty() { "none".to_owned() } else { known.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ") }
    )]
    NotListed {
        /// The name.
        name: String,
        /// The keys that are there.
        known: Vec<String>,
        /// Of these, the nearest.
        nearest: Option<String>,
    },
    /// It is a topic where a queue is meant, or the reverse.
    #[error("`{name}` stands for {found}, but a {wanted} is meant here")]
    OtherKind {
        /// The name.
        name: String,
        /// What it stands for.
        found: Destination,
        /// What is meant.
        wanted: &'static str,
    },
    /// The physical name.
    #[error(transparent)]
    Name(#[from] DestinationError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_table_a_bare_name_stands_for_itself() {
        let destinations = Destinations::default();
        assert_eq!(destinations.queue("orders").unwrap(), Destination::queue("orders").unwrap());
        assert_eq!(destinations.topic("orders").unwrap(), Destination::topic("orders").unwrap());
        assert_eq!(destinations.resolve("topic://orders").unwrap(), Destination::topic("orders").unwrap());
        assert!(destinations.queue("").is_err());
    }

    #[test]
    fn with_a_table_a_bare_name_must_be_one_of_its_keys() {
        let destinations =
            Destinations::of_table(vec![("orders".to_owned(), Destination::queue("shop.orders").unwrap())]);
        assert_eq!(destinations.resolve("orders").unwrap().name(), "shop.orders");
        assert_eq!(destinations.queue("queue://audit").unwrap().name(), "audit");
        assert_eq!(
            destinations.queue("order").unwrap_err().to_string(),
            "`[destinations]` has no key `order`, did you mean `orders`?; it has `orders`; beside these, `queue://NAME` and `topic://NAME` can be used"
        );
        assert_eq!(
            destinations.topic("orders").unwrap_err().to_string(),
            "`orders` stands for queue://shop.orders, but a topic is meant here"
        );
    }
}

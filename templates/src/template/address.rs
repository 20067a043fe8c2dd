//! Where a template sends to and receives from: a destination, or a name that is looked up.

use std::error::Error;
use std::fmt::{self, Debug};
use std::sync::Arc;

use corriere_core::{Destination, DestinationKind};

/// A destination, or a name that the template's [`DestinationResolver`] turns into one.
///
/// Every method that takes a destination takes `impl Into<Address>`: a [`Destination`], or text such as `orders`,
/// `queue://shop.orders` or `topic://prices`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// This destination.
    Destination(Destination),
    /// What the resolver finds under this name.
    Name(Arc<str>),
}

/// Finds the destination behind a name.
pub trait DestinationResolver: Debug + Send + Sync {
    /// The destination of this name.
    ///
    /// # Errors
    /// When there is none. The text should say which names there are.
    fn resolve(&self, name: &str) -> Result<Destination, Box<dyn Error + Send + Sync>>;
}

/// Takes every name as it stands: `queue://NAME`, `topic://NAME`, and a bare name as a queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct DynamicDestinations;

impl DestinationResolver for DynamicDestinations {
    fn resolve(&self, name: &str) -> Result<Destination, Box<dyn Error + Send + Sync>> {
        Ok(Destination::parse(name, DestinationKind::Queue)?)
    }
}

impl From<Destination> for Address {
    fn from(destination: Destination) -> Self {
        Self::Destination(destination)
    }
}

impl From<&Destination> for Address {
    fn from(destination: &Destination) -> Self {
        Self::Destination(destination.clone())
    }
}

impl From<&str> for Address {
    fn from(name: &str) -> Self {
        Self::Name(name.into())
    }
}

impl From<String> for Address {
    fn from(name: String) -> Self {
        Self::Name(name.into())
    }
}

impl From<&String> for Address {
    fn from(name: &String) -> Self {
        Self::Name(name.as_str().into())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Destination(destination) => fmt::Display::fmt(destination, f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

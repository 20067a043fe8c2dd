//! Which provider serves which scheme of a URL.

use std::sync::Arc;

use super::{Provider, ProviderError};

/// A scheme such as `vm`, and what opens its URLs. Providers register theirs with `inventory::submit!`.
#[derive(Debug)]
pub struct ProviderScheme {
    /// The part of the URL before the colon.
    pub scheme: &'static str,
    /// Finds the provider behind the rest of the URL: authority and path, without the options.
    pub open: fn(address: &str) -> Result<Arc<dyn Provider>, ProviderError>,
}

inventory::collect!(ProviderScheme);

/// The provider behind `scheme` and `address`.
///
/// # Errors
/// [`ProviderError::Unreachable`] when no provider has that scheme, naming those that are linked in, or what the
/// provider itself refuses, such as [`ProviderError::Address`].
pub fn provider_for(scheme: &str, address: &str) -> Result<Arc<dyn Provider>, ProviderError> {
    let mut known: Vec<String> = Vec::new();
    for candidate in inventory::iter::<ProviderScheme> {
        if candidate.scheme == scheme {
            return (candidate.open)(address);
        }
        known.push(format!("`{}:`", candidate.scheme));
    }
    known.sort_unstable();
    Err(ProviderError::Unreachable {
        url: format!("{scheme}:{address}"),
        reason: if known.is_empty() {
            "no provider is linked into this program (the feature `embedded` brings `vm:`)".to_owned()
        } else {
            format!("no provider serves `{scheme}:`; there is {}", known.join(", "))
        },
    })
}

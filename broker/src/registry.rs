//! The brokers of this process by name, and the scheme `vm:` that finds them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use corriere_core::provider::{Provider, ProviderError, ProviderScheme};

use crate::broker::{Broker, StartError};
use crate::edge::Edge;

/// Weak, so that being listed keeps no broker alive. None is upgraded while this is locked, except to be handed out:
/// the last strong reference must not go here, as [`leave`] takes the lock again.
static BROKERS: Mutex<BTreeMap<String, Weak<Edge>>> = Mutex::new(BTreeMap::new());

inventory::submit! {
    ProviderScheme { scheme: "vm", open }
}

fn brokers() -> MutexGuard<'static, BTreeMap<String, Weak<Edge>>> {
    BROKERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses a name that is taken, before anything is done for it.
pub(crate) fn check_free(name: &str) -> Result<(), StartError> {
    check(&brokers(), name)
}

fn check(brokers: &BTreeMap<String, Weak<Edge>>, name: &str) -> Result<(), StartError> {
    if brokers.get(name).is_some_and(|other| other.strong_count() > 0) {
        return Err(StartError::NameInUse { name: name.to_owned() });
    }
    Ok(())
}

/// Lists a broker under its name.
pub(crate) fn enter(edge: &Arc<Edge>) -> Result<(), StartError> {
    let mut brokers = brokers();
    check(&brokers, edge.name())?;
    brokers.insert(edge.name().to_owned(), Arc::downgrade(edge));
    Ok(())
}

/// Frees the name of a broker, unless another one has it by now.
pub(crate) fn leave(edge: &Edge) {
    let mut brokers = brokers();
    if brokers.get(edge.name()).is_some_and(|listed| std::ptr::eq(listed.as_ptr(), edge)) {
        brokers.remove(edge.name());
    }
}

fn open(address: &str) -> Result<Arc<dyn Provider>, ProviderError> {
    let name = address.trim_start_matches("//").trim_end_matches('/');
    let found = brokers().get(name).and_then(Weak::upgrade);
    match found {
        Some(edge) => Ok(Arc::new(Broker::from_edge(edge))),
        None => Err(ProviderError::Unreachable { url: format!("vm://{name}"), reason: running() }),
    }
}

/// The names of those that run, in their order.
pub(crate) fn names() -> Vec<String> {
    let brokers = brokers();
    brokers.iter().filter(|(_, edge)| edge.strong_count() > 0).map(|(name, _)| name.clone()).collect()
}

/// What runs instead, for a message.
fn running() -> String {
    let names: Vec<_> = names().into_iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        "no broker runs in this process; start one with `Broker::start` or the table `[broker]`".to_owned()
    } else {
        format!("no broker of that name runs in this process; there is {}", names.join(", "))
    }
}

//! Which connections are there by their ids. A client that has lost its connection comes again under the same id before
//! the loss is noticed here: the older connection ends then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

/// The connections that were introduced.
#[derive(Debug, Default)]
pub(super) struct Registry(Mutex<HashMap<Arc<str>, Entry>>);

#[derive(Debug)]
struct Entry {
    oust: Arc<Notify>,
    /// Closed when the connection has ended.
    ended: watch::Receiver<()>,
}

/// The place of a connection, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Registration {
    registry: Arc<Registry>,
    id: Arc<str>,
    ended: watch::Sender<()>,
}

impl Registry {
    /// Takes the place of `id`, after whoever had it was told so by its `oust` and has ended.
    pub(super) async fn enter(self: &Arc<Self>, id: &Arc<str>, oust: &Arc<Notify>) -> Registration {
        loop {
            let mut earlier = {
                let mut entries = self.lock();
                let Some(entry) = entries.get(id) else {
                    let (sender, ended) = watch::channel(());
                    entries.insert(Arc::clone(id), Entry { oust: Arc::clone(oust), ended });
                    return Registration { registry: Arc::clone(self), id: Arc::clone(id), ended: sender };
                };
                entry.oust.notify_one();
                entry.ended.clone()
            };
            // Nothing is ever sent: this ends when the sender is dropped.
            let _ = earlier.changed().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Entry>> {
        // Nothing unwinds while this is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Whoever waits for the end finds the place free, as the sender goes after this.
        self.registry.lock().remove(&self.id);
        let _ = self.ended.send(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_comes_again_waits_until_the_older_one_has_ended() {
        let registry = Arc::new(Registry::default());
        let (first, second) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let id: Arc<str> = "ID:a".into();
        let older = registry.enter(&id, &first).await;
        let other = registry.enter(&"ID:b".into(), &first).await;
        let ousting = tokio::spawn({
            let (registry, id, second) = (Arc::clone(&registry), Arc::clone(&id), Arc::clone(&second));
            async move { registry.enter(&id, &second).await }
        });
        first.notified().await;
        assert!(!ousting.is_finished());
        drop(older);
        let newer = ousting.await.unwrap();
        drop((newer, other));
        assert!(registry.lock().is_empty());
    }
}

//! The end of a test's application, and what it finds at its next start.

use corriere_broker::Broker;
use corriere_broker::files::Survival;

use super::running::{Life, RunningTestApp};
use crate::containers::ListenerContainer;

impl RunningTestApp {
    /// Ends the process as `kill -9` would, and starts the same application on what it left: all that was written is
    /// there, synced or not. Handlers that are at work end where they await; what they had not settled comes again,
    /// counted. What waits on this application's connections fails.
    ///
    /// The clock goes on, and the test's own beans are the same; the beans of the configuration, the listeners and all
    /// counts begin anew. A blocking listener cannot be ended: it runs on, on its own and without effect on the broker.
    ///
    /// # Panics
    /// When it does not start again.
    pub async fn crash(self) -> Self {
        self.die(Survival::Process, " after the crash").await
    }

    /// As [`RunningTestApp::crash`], with the power cut as well: what was not synced survives in parts, or not at all, as
    /// the seed decides.
    ///
    /// # Panics
    /// When it does not start again.
    pub async fn power_cut(self, seed: u64) -> Self {
        self.die(Survival::PowerCut { seed }, &format!(" after the power cut of seed {seed}")).await
    }

    /// Stops the application in order, as [`Application::stop`](crate::application::Application::stop) does, and starts
    /// it again on what it kept. The clock goes on, and the test's own beans are the same.
    ///
    /// # Panics
    /// When it does not start again.
    pub async fn restart(self) -> Self {
        let Life { setup, files, application, broker, .. } = self.life;
        application.stop().await;
        stop(broker).await;
        // Whatever still has the files open has them no longer.
        setup.start(files.survive(Survival::Process), " after the restart").await
    }

    async fn die(self, how: Survival, after: &str) -> Self {
        let Self { life: Life { setup, files, application, broker, .. }, template } = self;
        // The moment of death: from here on nothing of this application changes what the next one finds.
        let survived = files.survive(how);
        let ends: Vec<_> = application.containers().iter().map(ListenerContainer::kill).collect();
        stop(broker).await;
        for end in ends {
            end.await;
        }
        drop((application, template));
        setup.start(survived, after).await
    }
}

/// Blocks while the store is closed.
async fn stop(broker: Broker) {
    if let Err(error) = tokio::task::spawn_blocking(move || broker.stop()).await {
        std::panic::resume_unwind(error.into_panic());
    }
}

//! The task that wakes the machine, and does what others have left.

use std::sync::{Arc, Weak};

use corriere_core::Timestamp;

use super::Edge;
use crate::machine::Input;

/// What the timekeeper does next.
#[derive(Debug)]
enum Task {
    /// Lets others run, and then performs more of what is queued.
    Perform,
    /// Waits for the bell, or for the moment at which the machine is to be woken.
    Wait(Option<Timestamp>),
}

impl Edge {
    /// Wakes the machine when something is due, and performs what others left, until the broker is gone.
    pub(crate) async fn keep_time(me: Weak<Self>) {
        let Some((bell, clock)) = me.upgrade().map(|edge| (Arc::clone(&edge.bell), edge.clock.clone()))
        else {
            return;
        };
        while let Some(task) = me.upgrade().and_then(|edge| edge.next_task()) {
            match task {
                Task::Perform => tokio::task::yield_now().await,
                Task::Wait(None) => bell.notified().await,
                Task::Wait(Some(wake_at)) => tokio::select! {
                    () = bell.notified() => {}
                    () = clock.sleep_until(wake_at) => {
                        if let Some(edge) = me.upgrade() {
                            edge.tick();
                        }
                    }
                },
            }
        }
    }

    /// Performs what was left, and says what the timekeeper has to do next; `None` when there is nothing more to do.
    fn next_task(&self) -> Option<Task> {
        self.drive_if_free();
        self.lead_for_others();
        let mut state = self.lock();
        let is_driven = self.inbox.driver().is_some();
        let is_left = self.inbox.len() > 0 || !state.queued.is_empty();
        if is_left && !is_driven {
            return Some(Task::Perform);
        }
        if state.stopped.is_some() && !is_left && !is_driven {
            return None;
        }
        state.armed_for = state.wake_at;
        Some(Task::Wait(state.wake_at.filter(|_| state.stopped.is_none())))
    }

    /// Steps the machine when something is due, though another may drive: what it is to be woken for next must be known.
    fn tick(&self) {
        let mut state = self.lock();
        self.take_all_posted(&mut state);
        self.step(&mut state, [Input::Tick]);
        drop(state);
        self.drive_if_free();
    }
}

//! What frames that are not complete yet may hold, of all connections together.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// A frame up to so many bytes needs no place, so that acknowledgements and the like never wait for one, and so many bytes
/// are read of a larger one before it does.
pub(crate) const SMALL: usize = 64 * 1024;

/// What is counted together, as a semaphore counts no more than fits into four bytes.
const UNIT: usize = 1024;

/// How long a frame that has a place may take, beside the time for its bytes.
const GRACE: Duration = Duration::from_secs(30);

/// How many bytes of it have to come each second after that, as others may wait for its place.
const LEAST_RATE: usize = 8 * 1024;

/// Room for large frames while they arrive. A frame is let in whole, first come first served, so that no two wait for
/// each other's.
#[derive(Clone, Debug)]
pub(crate) struct FrameRoom {
    units: Arc<Semaphore>,
    all: u32,
}

impl FrameRoom {
    /// Room for so many bytes, or for one frame of the largest size where that is more.
    pub(crate) fn new(bytes: usize, largest: usize) -> Self {
        let all = units(bytes.max(largest)).min(u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX));
        let units = Arc::new(Semaphore::new(usize::try_from(all).unwrap_or(Semaphore::MAX_PERMITS)));
        Self { units, all }
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

type Waiting = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send + Sync>>;

/// The place of the frame that one connection is receiving.
pub(crate) struct FramePlace {
    room: FrameRoom,
    state: State,
}

enum State {
    Outside,
    /// Kept here, so that a reader whose future is dropped does not lose its turn.
    Waiting(Waiting),
    Inside {
        _units: Option<OwnedSemaphorePermit>,
        since: Instant,
    },
}

impl FramePlace {
    pub(crate) fn in_room(room: FrameRoom) -> Self {
        Self { room, state: State::Outside }
    }

    /// Has a place for a frame of this size, after waiting for it; whether it has it only now. Dropping the future loses
    /// neither the place nor the turn.
    pub(crate) async fn enter(&mut self, size: usize) -> bool {
        if let State::Outside = self.state {
            let (units, count) = (Arc::clone(&self.room.units), units(size).min(self.room.all));
            // Nobody closes the semaphore.
            self.state = State::Waiting(Box::pin(async move { units.acquire_many_owned(count).await.ok() }));
        }
        let State::Waiting(waiting) = &mut self.state else { return false };
        let units = waiting.await;
        self.state = State::Inside { _units: units, since: Instant::now() };
        true
    }

    /// Gives up the place: the frame is complete.
    pub(crate) fn leave(&mut self) {
        self.state = State::Outside;
    }

    /// Whether it has a place, or waits for one.
    pub(crate) fn is_taken(&self) -> bool {
        !matches!(self.state, State::Outside)
    }

    /// When more has to have come of the frame that has the place, of which so many bytes have.
    pub(crate) fn deadline(&self, received: usize) -> Option<Instant> {
        let State::Inside { since, .. } = &self.state else { return None };
        let seconds = u64::try_from(received / LEAST_RATE).unwrap_or(u64::MAX);
        since.checked_add(GRACE)?.checked_add(Duration::from_secs(seconds))
    }
}

impl fmt::Debug for FramePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Outside => "outside",
            State::Waiting(_) => "waiting",
            State::Inside { .. } => "inside",
        };
        f.debug_tuple("FramePlace").field(&state).finish()
    }
}

//! What frames that are not complete yet may hold, of all connections together.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// A frame up to so many bytes needs no place, so that acknowledgements and the like never wait for one. Of a larger one so many
/// bytes are read before it does, and it is let in by as many at a time.
pub(crate) const SMALL: usize = 64 * 1024;

/// What is counted together, as a semaphore counts no more than fits into four bytes.
const UNIT: usize = 1024;

/// How long a frame that has a place may take, beside the time for its bytes.
const GRACE: Duration = Duration::from_secs(30);

/// How many bytes of it have to come each second after that, as others may want its room.
const LEAST_RATE: usize = 8 * 1024;

/// The same for the one that is let in beyond the room, as all others wait for it: the largest of ActiveMQ's frames, 100 MiB, has
/// four minutes.
const LEAST_RATE_BEYOND: usize = 512 * 1024;

/// Room for large frames while they arrive. A frame takes what has come of it and a little more, so that one that is announced and
/// does not come is in nobody's way. Where there is none left, one frame at a time goes on beyond it to its end, first come first
/// served, so that no two wait for each other's.
#[derive(Clone, Debug)]
pub(crate) struct FrameRoom {
    units: Arc<Semaphore>,
    beyond: Arc<Semaphore>,
}

impl FrameRoom {
    /// Room for so many bytes, and for one frame beyond.
    pub(crate) fn new(bytes: usize) -> Self {
        let units = (bytes / UNIT).min(Semaphore::MAX_PERMITS);
        Self { units: Arc::new(Semaphore::new(units)), beyond: Arc::new(Semaphore::new(1)) }
    }

    /// Lets so many bytes in, or all the rest of a frame beyond the room. Nobody closes the semaphores.
    async fn let_in(self, bytes: usize) -> LetIn {
        let count = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        tokio::select! {
            biased;
            units = self.units.acquire_many_owned(count) => LetIn::Units(units.ok()),
            beyond = self.beyond.acquire_owned() => LetIn::Beyond(beyond.ok()),
        }
    }
}

enum LetIn {
    Units(Option<OwnedSemaphorePermit>),
    Beyond(Option<OwnedSemaphorePermit>),
}

/// The place of the frame that one connection is receiving.
pub(crate) struct FramePlace {
    room: FrameRoom,
    held: Option<Held>,
    /// Kept here, so that a reader whose future is dropped does not lose its turn.
    waiting: Option<Waiting>,
}

/// What a frame has of the room.
struct Held {
    /// When it was let in; later by what it has waited since.
    since: Instant,
    /// How many of its bytes are let in.
    bytes: usize,
    units: Option<OwnedSemaphorePermit>,
    beyond: Option<Beyond>,
}

/// A frame that goes on to its end, whatever room there is.
struct Beyond {
    _permit: Option<OwnedSemaphorePermit>,
    since: Instant,
    /// How much had come of it before.
    received: usize,
}

struct Waiting {
    since: Instant,
    let_in: Pin<Box<dyn Future<Output = LetIn> + Send + Sync>>,
}

impl FramePlace {
    pub(crate) fn in_room(room: FrameRoom) -> Self {
        Self { room, held: None, waiting: None }
    }

    /// Has room for more of a frame of this size, of which so many bytes have come, after waiting for it; whether it has it only
    /// now. Dropping the future loses neither the room nor the turn.
    pub(crate) async fn enter(&mut self, size: usize, received: usize) -> bool {
        let wanted = size.min(received.saturating_add(SMALL));
        let bytes = self.held.as_ref().map_or(0, |held| held.bytes);
        if bytes >= wanted {
            return false;
        }
        let waiting = self.waiting.get_or_insert_with(|| Waiting {
            since: Instant::now(),
            let_in: Box::pin(self.room.clone().let_in(wanted - bytes)),
        });
        let let_in = waiting.let_in.as_mut().await;
        let (now, waited) = (Instant::now(), waiting.since.elapsed());
        self.waiting = None;
        let held = self.held.get_or_insert(Held { since: now, bytes: 0, units: None, beyond: None });
        held.since = held.since.checked_add(waited).unwrap_or(now).min(now);
        match let_in {
            LetIn::Units(more) => {
                held.bytes = wanted;
                match (&mut held.units, more) {
                    (Some(units), Some(more)) => units.merge(more),
                    (units, more) => *units = more,
                }
            }
            LetIn::Beyond(permit) => {
                held.bytes = size;
                held.beyond = Some(Beyond { _permit: permit, since: now, received });
            }
        }
        true
    }

    /// Gives up the place: the frame is complete.
    pub(crate) fn leave(&mut self) {
        (self.held, self.waiting) = (None, None);
    }

    /// Whether it has a place, or waits for one.
    pub(crate) fn is_taken(&self) -> bool {
        self.held.is_some() || self.waiting.is_some()
    }

    /// How much may be read now, when so many bytes of the frame have come.
    pub(crate) fn room(&self, received: usize) -> usize {
        self.held.as_ref().map_or(SMALL, |held| held.bytes.saturating_sub(received))
    }

    /// When more has to have come of the frame that has the place, of which so many bytes have.
    pub(crate) fn deadline(&self, received: usize) -> Option<Instant> {
        let held = self.held.as_ref()?;
        let (since, seconds) = match &held.beyond {
            Some(beyond) => (beyond.since, received.saturating_sub(beyond.received) / LEAST_RATE_BEYOND),
            None => (held.since, received / LEAST_RATE),
        };
        let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
        since.checked_add(GRACE)?.checked_add(Duration::from_secs(seconds))
    }
}

impl fmt::Debug for FramePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FramePlace")
            .field("bytes", &self.held.as_ref().map(|held| held.bytes))
            .field("is_waiting", &self.waiting.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const LARGEST: usize = 100 * 1024 * 1024;

    #[test]
    fn a_frame_that_is_announced_and_does_not_come_takes_no_room_from_others() {
        let room = FrameRoom::new(LARGEST);
        let mut places: Vec<_> = (0..500).map(|_| FramePlace::in_room(room.clone())).collect();
        for place in &mut places {
            assert_eq!(place.enter(LARGEST, SMALL).now_or_never(), Some(true));
            assert_eq!(place.enter(LARGEST, SMALL).now_or_never(), Some(false), "nothing has come since");
            assert_eq!(place.room(SMALL), SMALL);
        }
        assert_eq!(room.units.available_permits() * UNIT, LARGEST - 500 * 2 * SMALL);
        // One that comes takes what has come, and gives it back.
        let mut place = FramePlace::in_room(room.clone());
        let before = room.units.available_permits();
        for received in (SMALL..LARGEST / 4).step_by(SMALL) {
            assert_eq!(place.enter(LARGEST / 4, received).now_or_never(), Some(true));
        }
        assert_eq!((before - room.units.available_permits()) * UNIT, LARGEST / 4);
        assert_eq!(room.beyond.available_permits(), 1, "there was room for all");
        place.leave();
        assert_eq!(room.units.available_permits(), before);
    }

    #[test]
    fn frames_that_fill_the_room_together_end_one_after_the_other() {
        let room = FrameRoom::new(4 * SMALL);
        let mut places: Vec<_> = (0..2).map(|_| FramePlace::in_room(room.clone())).collect();
        for place in &mut places {
            assert_eq!(place.enter(LARGEST, SMALL).now_or_never(), Some(true));
        }
        let [first, second] = places.as_mut_slice() else { unreachable!() };
        assert_eq!(first.enter(LARGEST, 2 * SMALL).now_or_never(), Some(true));
        assert_eq!(first.room(2 * SMALL), LARGEST - 2 * SMALL, "it goes on to its end");
        for _ in 0..3 {
            assert_eq!(second.enter(LARGEST, 2 * SMALL).now_or_never(), None);
        }
        assert_eq!(second.room(2 * SMALL), 0);
        first.leave();
        assert_eq!(second.enter(LARGEST, 2 * SMALL).now_or_never(), Some(true));
        drop(places);
        assert_eq!((room.units.available_permits() * UNIT, room.beyond.available_permits()), (4 * SMALL, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_that_all_others_wait_for_has_minutes_and_no_hours() {
        let mut alone = FramePlace::in_room(FrameRoom::new(LARGEST));
        let mut beyond = FramePlace::in_room(FrameRoom::new(0));
        for place in [&mut alone, &mut beyond] {
            assert!(place.enter(LARGEST, SMALL).await);
        }
        let start = Instant::now();
        let time = |place: &FramePlace| place.deadline(LARGEST).unwrap() - start;
        assert!(time(&beyond) < Duration::from_secs(5 * 60), "{:?}", time(&beyond));
        assert!(time(&alone) > Duration::from_secs(60 * 60), "{:?}", time(&alone));
        // What it waits itself is not its fault.
        let room = FrameRoom::new(4 * SMALL);
        let mut places: Vec<_> = (0..3).map(|_| FramePlace::in_room(room.clone())).collect();
        for place in &mut places {
            assert!(place.enter(LARGEST, SMALL).await);
        }
        let [first, second, _beyond] = places.as_mut_slice() else { unreachable!() };
        let before = first.deadline(2 * SMALL).unwrap();
        assert!(first.enter(LARGEST, 2 * SMALL).now_or_never().is_none());
        tokio::time::advance(Duration::from_secs(600)).await;
        second.leave();
        assert!(first.enter(LARGEST, 2 * SMALL).await);
        assert_eq!(first.deadline(2 * SMALL).unwrap() - before, Duration::from_secs(600));
    }
}

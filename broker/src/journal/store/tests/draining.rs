//! A full disk can always be drained: whatever filled it, whatever ended in between, and in whichever order its messages go.

use std::time::Instant;

use super::*;
use crate::journal::tests::Dice;

/// A disk and what is done with it.
#[derive(Debug)]
struct Case {
    segment: u64,
    disk: u64,
    /// Bytes of a body at most.
    body: u64,
    /// Submissions between two steps at most.
    together: u64,
    queues: u64,
    /// How often something else is done in between, of a thousand times.
    breaks: u64,
}

impl Case {
    fn of(dice: &mut Dice) -> Self {
        let segment = dice.one_of(&[4 << 10, 16 << 10, 64 << 10, 256 << 10]);
        let most = dice.one_of(&[256 << 10, 2 << 20, 6 << 20]);
        Self {
            segment,
            disk: 4 * segment + (512 << 10) + dice.below(most),
            body: dice.one_of(&[1, 50, 50, 400, 3_000, 20_000]),
            together: dice.one_of(&[1, 1, 8, 40]),
            queues: dice.one_of(&[1, 1, 3, 40]),
            breaks: dice.one_of(&[0, 1, 10, 50]),
        }
    }
}

/// A store on a full disk, and what it has to have.
struct Filled {
    case: Case,
    dice: Dice,
    store: Stepwise,
    next: u64,
    /// Those that were confirmed and are not acknowledged.
    live: Vec<u64>,
    transactions: u64,
}

impl Filled {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let case = Case::of(&mut dice);
        let files = RecordedFiles::new();
        files.limit(Some(case.disk));
        let store = Self::open(&case, files);
        Self { case, dice, store, next: 1, live: Vec::new(), transactions: 0 }
    }

    fn open(case: &Case, files: RecordedFiles) -> Stepwise {
        let options = JournalOptions { max_file_length: case.segment, ..JournalOptions::new(DIRECTORY) };
        Stepwise::open(files, options).unwrap_or_else(|error| panic!("{error}"))
    }

    fn housekeep(&self) {
        drop(self.store.store.checkpoint());
        self.store.store.housekeep();
    }

    /// What may happen at any time.
    fn perhaps_break(&mut self) {
        if self.dice.below(1_000) >= self.case.breaks {
            return;
        }
        match self.dice.below(4) {
            0 => self.store.store.housekeep(),
            1 | 2 => self.housekeep(),
            _ => self.restart(),
        }
    }

    fn restart(&mut self) {
        let how = match self.dice.below(3) {
            0 => {
                self.store.store.close();
                Survival::OnlySynced
            }
            1 => Survival::Process,
            // All was durable that was complete; acknowledgements are by the next sync.
            _ => {
                let _ = self.store.store.core.sync_all();
                Survival::PowerCut { seed: self.dice.below(u64::MAX) }
            }
        };
        let files = self.store.files.survive(how);
        self.store = Self::open(&self.case, files);
        let mut there = names(&self.store.store.recover());
        there.sort_unstable();
        assert_eq!(there, self.live, "after {how:?}");
    }

    fn append(&mut self, arrival: Arrival, transaction: Option<StoreTransaction>) -> StoreOperation {
        let queue = queue(&format!("queue-{}", self.next % self.case.queues));
        let bytes = self.dice.below(self.case.body + 1) as usize;
        let stored = self.next;
        self.next += 1;
        let message = message(stored, bytes);
        StoreOperation::Append { stored: StoredId(stored), queue, arrival, message, transaction }
    }

    /// Sends until it is full.
    fn fill(&mut self) {
        self.store.store.take_sends();
        for _ in 0..200_000 {
            let count = 1 + self.dice.below(self.case.together);
            let sent: Vec<_> = (0..count)
                .map(|_| {
                    let stored = self.next;
                    let sent = vec![self.append(Arrival::Sent, None)];
                    (stored, submit(&self.store.store, sent))
                })
                .collect();
            self.store.store.step();
            let mut is_full = false;
            for (stored, outcome) in sent {
                match outcome.try_recv().unwrap() {
                    Ok(()) => self.live.push(stored),
                    Err(StoreError::Full { .. }) => is_full = true,
                    Err(other) => panic!("{other}"),
                }
            }
            if is_full {
                return;
            }
            self.perhaps_break();
        }
        panic!("there is room for ever");
    }

    /// Acknowledges messages, in an order that is decided here, until so many are left. None may be refused.
    fn drain(&mut self, left: usize) {
        let order = self.dice.below(4);
        while self.live.len() > left {
            let count = (1 + self.dice.below(self.case.together) as usize).min(self.live.len() - left);
            let taken: Vec<u64> = (0..count).map(|_| self.take(order)).collect();
            let in_transaction = self.dice.below(8) == 0;
            let outcomes = if in_transaction {
                self.transactions += 1;
                let id = local(self.transactions);
                let removed = taken.iter().map(|stored| StoreOperation::Remove {
                    stored: StoredId(*stored),
                    reason: Removal::Acknowledged,
                    transaction: Some(id.clone()),
                });
                let staged = submit(&self.store.store, removed.collect());
                vec![staged, submit(&self.store.store, vec![StoreOperation::Commit(id)])]
            } else {
                taken.iter().map(|stored| submit(&self.store.store, remove(*stored))).collect()
            };
            self.store.store.step();
            for outcome in outcomes {
                let outcome = outcome.try_recv();
                assert_eq!(outcome, Ok(Ok(())), "with {} left; {}", self.live.len(), self.describe());
            }
            self.perhaps_break();
        }
    }

    fn describe(&self) -> String {
        let core = &self.store.store.core;
        let checkpoint = core.checkpoint();
        let kept = core.ledger.index(&core.segments);
        format!(
            "{checkpoint:?}, {:?}, live records {:?}, {} spares, full: {:?}",
            core.room,
            kept.index.segments(),
            core.segments.spares(),
            core.status.full()
        )
    }

    fn take(&mut self, order: u64) -> u64 {
        let last = self.live.len() - 1;
        let at = match order {
            0 => 0,
            1 => last,
            2 => self.dice.below(self.live.len() as u64) as usize,
            // A part of each page.
            _ => self.live.iter().position(|stored| stored % 3 != 0).unwrap_or(0),
        };
        self.live.remove(at)
    }

    /// States are noted, and a message moves if there is room for that; nothing is lost by it either way.
    fn meddle(&mut self) {
        let state = DeliveryState {
            failed_deliveries: 2,
            not_before: Some(Timestamp(7)),
            since: Timestamp(6),
            conversion_failed: true,
        };
        for stored in self.live.clone() {
            self.store.ok(vec![StoreOperation::DeliveryState { stored: StoredId(stored), state }]);
        }
        for _ in 0..self.live.len().min(20) {
            let (from, to) = (self.take(2), self.next);
            let moved = vec![self.append(Arrival::MovedIn, None), remove(from).remove(0)];
            match self.store.run(moved) {
                Ok(()) => self.live.push(to),
                Err(StoreError::Full { .. }) => self.live.push(from),
                Err(other) => panic!("{other}"),
            }
            self.live.sort_unstable();
        }
    }

    fn play(&mut self) {
        self.store.store.housekeep();
        for _ in 0..3 {
            self.fill();
            assert!(!self.live.is_empty(), "nothing fits");
            if self.dice.below(2) == 0 {
                self.restart();
            }
            if self.dice.below(2) == 0 {
                self.meddle();
            }
            if self.dice.below(2) == 0 {
                let some = self.dice.below(self.live.len() as u64 + 1) as usize;
                self.drain(some);
                self.housekeep();
                self.fill();
            }
            self.drain(0);
            self.housekeep();
            self.store.store.take_sends();
            let sent = vec![self.append(Arrival::Sent, None)];
            self.live.push(self.next - 1);
            self.store.ok(sent);
        }
        self.restart();
    }
}

#[test]
fn whatever_filled_a_disk_it_is_drained_to_the_last_message_and_then_filled_again() {
    let first = std::env::var("CORRIERE_SEED").map_or(1, |seed| seed.parse().unwrap());
    let cases = std::env::var("CORRIERE_CASES").map_or(12, |cases| cases.parse().unwrap());
    let since = Instant::now();
    for seed in first..first + cases {
        let mut filled = Filled::new(seed);
        eprintln!("seed {seed}: {:?}", filled.case);
        filled.play();
        // On a slow machine fewer of them do, unless one is asked for.
        if since.elapsed() > Duration::from_secs(15) && first == 1 {
            break;
        }
    }
}

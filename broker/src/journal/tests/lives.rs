//! Many lives of one journal, with crashes at every step and old bytes everywhere.

use super::*;
use crate::files::Survival;

/// What a checkpoint and a client would know.
#[derive(Default)]
struct Known {
    /// What the checkpoint has taken over, and what was written behind it, with whether it was confirmed.
    taken_over: Vec<u64>,
    behind: Vec<(u64, bool)>,
    tail: Tail,
    last: u64,
}

impl Known {
    /// Some writes, syncs, checkpoints and recycled segments, until the process ends.
    fn live(&mut self, journal: &mut Journal, dice: &mut Dice) -> Result<(), WriteError> {
        loop {
            match dice.below(12) {
                0 => {
                    journal.writer.sync()?;
                    self.behind.drain(..).for_each(|(stored, _)| self.taken_over.push(stored));
                    self.tail = tail_at(journal.writer.end(), self.tail.epoch);
                    for segment in journal.segments.live() {
                        if segment.end() <= self.tail.from
                            && journal.segments.recycle(segment.base, None).is_err()
                        {
                            break;
                        }
                    }
                }
                1..=4 => {
                    journal.writer.sync()?;
                    self.behind.iter_mut().for_each(|(_, confirmed)| *confirmed = true);
                }
                _ => {
                    let parts = (0..1 + dice.below(3)).map(|_| {
                        let records = 1 + if dice.below(9) == 0 { 12 } else { dice.below(3) };
                        let record = |_| {
                            self.last += 1;
                            self.behind.push((self.last, false));
                            append(self.last, dice.below(900) as usize)
                        };
                        (0..records).map(record).collect::<Vec<_>>()
                    });
                    let parts = parts.collect::<Vec<_>>();
                    journal.write(&parts)?;
                }
            }
        }
    }

    /// What came back is all that was confirmed, in order, and nothing that was not written.
    fn recover(&mut self, entries: &[Entry], scanned: &Scanned, after: &str) {
        let found = appended(entries);
        let written = self.behind.iter().map(|(stored, _)| *stored).collect::<Vec<_>>();
        let confirmed = self.behind.iter().filter(|(_, confirmed)| *confirmed).count();
        assert!(written.starts_with(&found), "{after}: {found:?} of {written:?}");
        assert!(
            found.len() >= confirmed,
            "{after}: {found:?}, but {confirmed} of {written:?} were confirmed"
        );
        self.taken_over.extend(found);
        self.behind.clear();
        self.tail = tail_at(scanned.end, scanned.epoch + 1);
    }
}

#[test]
fn whatever_is_cut_old_or_recycled_never_comes_back() {
    let seed = std::env::var("CORRIERE_SEED").map_or(1, |seed| seed.parse().unwrap());
    for case in 0..60 {
        let mut dice = Dice(seed * 1_000 + case);
        let mut known = Known::default();
        let mut files = RecordedFiles::new();
        for life in 0..12 {
            let after = format!("seed {seed}, case {case}, life {life}");
            let (mut journal, entries, scanned) = Journal::resume(files, 4_096, known.tail);
            known.recover(&entries, &scanned, &after);
            let operations = journal.files.operations();
            journal.files.crash_at(operations + 1 + dice.below(60), dice.below(u64::MAX));
            known.live(&mut journal, &mut dice).unwrap_err();
            files = journal.files.survive(match dice.below(3) {
                0 => Survival::Process,
                1 => Survival::OnlySynced,
                _ => Survival::PowerCut { seed: dice.below(u64::MAX) },
            });
        }
    }
}

//! The rounds of a row: each side in turn, with the raw disk measured around each.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::limits::Raw;
use crate::measure::PACE;
use crate::rows::{Bar, Row};
use crate::sides::{Context, Line, Side};
use crate::statistics::median;

/// So many times as many rounds are tried as should be valid.
const PATIENCE: u32 = 5;
/// The raw disk may be so much faster at one moment of a round than at another.
const STEADY: f64 = 1.3;
const RAW_TIME: Duration = Duration::from_secs(1);

/// What came of a row.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) row: &'static Row,
    pub(crate) rounds: Vec<Round>,
    /// How many had to be valid.
    pub(crate) wanted: u32,
    /// Why there are no more rounds.
    pub(crate) failure: Option<Failure>,
}

/// One round.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) figure: f64,
    pub(crate) ours: f64,
    /// The one that was best.
    pub(crate) other: Option<f64>,
    /// Syncs per second of the raw disk: before the first side, and after each.
    pub(crate) raw: Vec<f64>,
    /// What else there is to tell of our side.
    pub(crate) beside: Option<String>,
    /// Why it is worth nothing, if it is.
    pub(crate) void: Option<&'static str>,
}

impl Outcome {
    /// The rounds that count: the valid ones, or all when there are too few of them.
    pub(crate) fn counting(&self) -> impl Iterator<Item = &Round> {
        let all = self.valid() < self.wanted as usize;
        self.rounds.iter().filter(move |round| all || round.void.is_none())
    }

    pub(crate) fn valid(&self) -> usize {
        self.rounds.iter().filter(|round| round.void.is_none()).count()
    }

    pub(crate) fn figure(&self) -> Option<f64> {
        median(self.counting().map(|round| round.figure))
    }
}

/// Makes rounds until enough are valid or too many were not. A side that fails ends the row, not the table.
pub(crate) fn run(
    row: &'static Row,
    context: &Context,
    wanted: u32,
    mut json: Option<&mut File>,
) -> Result<Outcome, Failure> {
    let mut outcome = Outcome { row, rounds: Vec::new(), wanted, failure: None };
    for number in 1..=wanted.saturating_mul(PATIENCE) {
        match round(row, context, number, json.as_deref_mut()) {
            Ok(round) => {
                let validity = round.void.map_or_else(|| "valid".to_owned(), |why| format!("void: {why}"));
                eprintln!("  round {number}: {:.3}, {validity}", round.figure);
                outcome.rounds.push(round);
            }
            Err(failure) => {
                eprintln!("  round {number}: {failure}");
                outcome.failure = Some(failure);
                break;
            }
        }
        if outcome.valid() >= wanted as usize {
            break;
        }
    }
    Ok(outcome)
}

fn round(row: &Row, context: &Context, number: u32, mut json: Option<&mut File>) -> Result<Round, Failure> {
    let yardstick = Raw::new(context.directory())?;
    let mut raw = vec![yardstick.rate(RAW_TIME)?];
    let mut measured = Vec::new();
    for side in row.others.iter().chain([&row.ours]) {
        let line = side.run(context, number)?;
        let before = raw[raw.len() - 1];
        let after = yardstick.rate(RAW_TIME)?;
        raw.push(after);
        let line = noted(line, *side, number, before, after)?;
        if let Some(json) = json.as_deref_mut() {
            writeln!(json, "{}", Value::Object(line.clone()))?;
        }
        measured.push(Measured { side: *side, line, raw: f64::midpoint(before, after) });
    }
    let Some(ours) = measured.pop() else { unreachable!("our side is always measured") };
    let values = values(row.bar, &ours, &measured)?;
    let void = void(row.bar, &raw);
    let beside = ours.line.get("beside").and_then(Value::as_str).map(str::to_owned);
    Ok(Round { figure: values.figure, ours: values.ours, other: values.other, raw, beside, void })
}

/// The line with the raw disk around it.
fn noted(mut line: Line, side: Side, number: u32, before: f64, after: f64) -> Result<Line, Failure> {
    line.insert("run".to_owned(), json!(number));
    line.insert("raw_before_per_s".to_owned(), json!(before));
    line.insert("raw_after_per_s".to_owned(), json!(after));
    let raw = f64::midpoint(before, after);
    line.insert("raw_fdatasync_per_s".to_owned(), json!(raw));
    if !matches!(side, Side::Restart { .. }) {
        let rate = number_of(&line, side.rate_field())?;
        line.insert("share".to_owned(), json!(rate / raw));
    }
    Ok(line)
}

#[derive(Debug)]
struct Measured {
    side: Side,
    line: Line,
    raw: f64,
}

#[derive(Debug, PartialEq)]
struct Values {
    figure: f64,
    ours: f64,
    other: Option<f64>,
}

impl Measured {
    fn rate(&self) -> Result<f64, Failure> {
        number_of(&self.line, self.side.rate_field())
    }

    fn share(&self) -> Result<f64, Failure> {
        Ok(self.rate()? / self.raw)
    }

    fn median_time(&self) -> Result<f64, Failure> {
        number_of(&self.line, "p50_us")
    }
}

fn values(bar: Bar, ours: &Measured, others: &[Measured]) -> Result<Values, Failure> {
    let best = |value: fn(&Measured) -> Result<f64, Failure>| {
        let values: Vec<f64> = others.iter().map(value).collect::<Result<_, _>>()?;
        Ok::<_, Failure>(values.into_iter().fold(f64::NAN, f64::max))
    };
    Ok(match bar {
        Bar::Share(_) => {
            let (ours, other) = (ours.share()?, best(Measured::share)?);
            Values { figure: ours / other, ours, other: Some(other) }
        }
        Bar::Times(_) | Bar::None => {
            let (ours, other) = (ours.rate()?, best(Measured::rate)?);
            Values { figure: ours / other, ours, other: Some(other) }
        }
        Bar::Above(_) => {
            let (ours, other) = (ours.median_time()?, best(Measured::median_time)?);
            Values { figure: ours - other, ours, other: Some(other) }
        }
        Bar::PerSync(_) => Values { figure: ours.share()?, ours: ours.rate()?, other: Some(ours.raw) },
        Bar::Seconds(_) => Values { figure: ours.rate()?, ours: ours.rate()?, other: None },
    })
}

fn number_of(line: &Line, field: &'static str) -> Result<f64, Failure> {
    line.get(field).and_then(Value::as_f64).ok_or_else(|| {
        let scenario = line.get("scenario").or_else(|| line.get("limit")).and_then(Value::as_str);
        Failure::NoField { command: scenario.unwrap_or("a measurement").to_owned(), field }
    })
}

/// Why a round is worth nothing with this raw disk around its sides.
fn void(bar: Bar, raw: &[f64]) -> Option<&'static str> {
    match bar {
        Bar::Seconds(_) | Bar::None => None,
        _ if !is_steady(raw) => Some("the raw disk moved by more than 30 %"),
        // Behind a disk that cannot keep up, everything waits for ever longer.
        Bar::Above(_) if raw.iter().any(|rate| *rate < PACE) => Some("the raw disk is slower than the pace"),
        _ => None,
    }
}

fn is_steady(raw: &[f64]) -> bool {
    let least = raw.iter().copied().fold(f64::INFINITY, f64::min);
    let most = raw.iter().copied().fold(0.0, f64::max);
    most <= least * STEADY
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::What;
    use crate::rows::ROWS;

    fn measured(what: What, field: &str, value: f64, raw: f64) -> Measured {
        let mut line = Line::new();
        line.insert(field.to_owned(), json!(value));
        Measured { side: Side::Measure(what), line, raw }
    }

    fn round(figure: f64, void: Option<&'static str>) -> Round {
        Round { figure, ours: 0.0, other: None, raw: Vec::new(), beside: None, void }
    }

    #[test]
    fn a_share_is_compared_with_the_best_skeleton_of_its_own_moment() {
        let ours = measured(What::P1, "msgs_per_s", 800.0, 1_000.0);
        let others = [
            measured(What::SkeletonP1Thread, "per_s", 1_000.0, 2_000.0),
            measured(What::SkeletonP1Leader, "per_s", 900.0, 900.0),
        ];
        let values = values(Bar::Share(0.8), &ours, &others).unwrap();
        assert_eq!(values, Values { figure: 0.8, ours: 0.8, other: Some(1.0) });
    }

    #[test]
    fn a_line_without_its_rate_is_no_figure() {
        let ours = measured(What::P1, "other", 800.0, 1_000.0);
        assert!(matches!(values(Bar::Times(5.0), &ours, &[]), Err(Failure::NoField { .. })));
    }

    #[test]
    fn a_disk_that_moves_by_more_than_a_third_is_not_steady() {
        assert!(is_steady(&[1_000.0, 1_300.0, 1_100.0]));
        assert!(!is_steady(&[1_000.0, 1_301.0]));
    }

    #[test]
    fn a_disk_slower_than_the_pace_voids_only_what_is_paced() {
        assert!(void(Bar::Above(150.0), &[900.0, 1_100.0]).is_some());
        assert_eq!(void(Bar::Share(0.8), &[900.0, 1_100.0]), None);
        assert_eq!(void(Bar::Seconds(2.0), &[900.0, 9_000.0]), None);
    }

    #[test]
    fn void_rounds_count_only_when_there_are_too_few_valid_ones() {
        let mut outcome = Outcome {
            row: &ROWS[0],
            rounds: vec![round(1.0, None), round(9.0, Some("it moved")), round(3.0, None)],
            wanted: 2,
            failure: None,
        };
        assert_eq!(outcome.figure(), Some(2.0));
        outcome.wanted = 3;
        assert_eq!(outcome.figure(), Some(3.0));
    }
}

//! The table as it is printed.

use crate::rounds::{Outcome, Round};
use crate::rows::Bar;
use crate::statistics::median;

const HEAD: [&str; 8] =
    ["what", "ours", "against", "figure (least to most)", "bar", "held", "rounds", "raw syncs/s"];

/// One line for each row, in Markdown.
pub(crate) fn render(outcomes: &[Outcome]) -> String {
    let lines: Vec<[String; 8]> = outcomes.iter().map(cells).collect();
    let mut widths = HEAD.map(|cell| cell.chars().count());
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = row(&HEAD.map(str::to_owned), &widths);
    text.push_str(&row(&widths.map(|width| "-".repeat(width)), &widths));
    for line in &lines {
        text.push_str(&row(line, &widths));
    }
    for outcome in outcomes {
        text.extend(notes(outcome));
    }
    text
}

fn row(cells: &[String; 8], widths: &[usize; 8]) -> String {
    let cells = cells.iter().zip(widths).map(|(cell, &width)| format!("{cell:<width$}"));
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn cells(outcome: &Outcome) -> [String; 8] {
    let bar = outcome.row.bar;
    let none = || "-".to_owned();
    let middle = |value: fn(&Round) -> Option<f64>| median(outcome.counting().filter_map(value));
    let ours = middle(|round| Some(round.ours)).map_or_else(none, |ours| side(bar, ours));
    let other = middle(|round| round.other).map_or_else(none, |other| against(bar, other));
    let figure = outcome.figure();
    let least = outcome.counting().map(|round| round.figure).reduce(f64::min);
    let most = outcome.counting().map(|round| round.figure).reduce(f64::max);
    let shown = match (figure, least, most) {
        (Some(figure), Some(least), Some(most)) => {
            let (figure, least, most) = (number(bar, figure), number(bar, least), number(bar, most));
            format!("{figure} ({least} to {most})")
        }
        _ => none(),
    };
    let held = figure.filter(|_| bar != Bar::None);
    let held = held.map_or("-", |figure| if bar.is_held_by(figure) { "yes" } else { "no" });
    let raws = || outcome.counting().flat_map(|round| round.raw.iter().copied());
    let raw = match (raws().reduce(f64::min), raws().reduce(f64::max)) {
        (Some(least), Some(most)) => format!("{least:.0} to {most:.0}"),
        _ => none(),
    };
    let rounds = format!("{} of {} valid", outcome.valid(), outcome.rounds.len());
    [outcome.row.what.to_owned(), ours, other, shown, wanted(bar), held.to_owned(), rounds, raw]
}

fn side(bar: Bar, value: f64) -> String {
    match bar {
        Bar::Share(_) => format!("{value:.2} × raw"),
        Bar::Times(_) | Bar::None => format!("{value:.0}/s"),
        Bar::Above(_) => format!("{value:.0} µs"),
        Bar::PerSync(_) => format!("{value:.0} orders/s"),
        Bar::Seconds(_) => format!("{value:.2} s"),
    }
}

fn against(bar: Bar, value: f64) -> String {
    if matches!(bar, Bar::PerSync(_)) { format!("{value:.0} syncs/s") } else { side(bar, value) }
}

fn number(bar: Bar, value: f64) -> String {
    match bar {
        Bar::Share(_) | Bar::PerSync(_) | Bar::Seconds(_) | Bar::None => format!("{value:.2}"),
        Bar::Times(_) => format!("{value:.1}"),
        Bar::Above(_) => format!("{value:+.0}"),
    }
}

fn wanted(bar: Bar) -> String {
    match bar {
        Bar::Share(least) => format!("≥ {least} of it"),
        Bar::Times(least) => format!("≥ {least} ×"),
        Bar::Above(most) => format!("≤ it + {most} µs"),
        Bar::PerSync(least) => format!("≥ {least} per sync"),
        Bar::Seconds(most) => format!("≤ {most} s"),
        Bar::None => "none".to_owned(),
    }
}

/// What has to be said of a row beside its numbers.
fn notes(outcome: &Outcome) -> Vec<String> {
    let name = outcome.row.name;
    let mut notes = Vec::new();
    if let Some(failure) = &outcome.failure {
        notes.push(format!("{name}: ended early: {failure}\n"));
    } else if outcome.valid() < outcome.wanted as usize {
        notes.push(format!(
            "{name}: only {} of {} rounds are valid, as the raw disk was not steady; the figure is the median of all\n",
            outcome.valid(),
            outcome.rounds.len()
        ));
    }
    let beside: Vec<_> = outcome.counting().filter_map(|round| round.beside.as_deref()).collect();
    if !beside.is_empty() {
        notes.push(format!("{name}: {}\n", beside.join("; ")));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;
    use crate::rows::ROWS;

    #[test]
    fn a_row_says_when_its_disk_was_not_steady_and_what_failed() {
        let round = Round {
            figure: 0.75,
            ours: 0.6,
            other: Some(0.8),
            raw: vec![900.0, 2_000.0],
            beside: None,
            void: Some("it moved"),
        };
        let unsteady = Outcome { row: &ROWS[0], rounds: vec![round], wanted: 1, failure: None };
        let missing = Failure::Received("a package is missing".to_owned());
        let failed = Outcome { row: &ROWS[2], rounds: Vec::new(), wanted: 1, failure: Some(missing) };
        let text = render(&[unsteady, failed]);
        assert!(text.contains("0.75 (0.75 to 0.75)"), "{text}");
        assert!(text.contains("p1: only 0 of 1 rounds"), "{text}");
        assert!(text.contains("transactions: ended early: a package is missing"), "{text}");
    }
}

//! Runs areas one after the other and says how it went.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::areas::{Area, Pace};
use crate::failure::Failure;
use crate::project::Project;

/// How one area went.
#[derive(Debug)]
struct Row {
    name: &'static str,
    budget: u64,
    outcome: Outcome,
}

#[derive(Debug)]
enum Outcome {
    Passed(Duration),
    Failed(Duration),
    NotRun,
}

/// Runs the areas in order up to the first that fails, and prints a table of all at the end.
pub(crate) fn run(project: &Project, areas: &[&'static Area], pace: Pace) -> Result<(), Failure> {
    let mut rows = Vec::new();
    let mut failed = None;
    for area in areas {
        let budget = area.budget(pace).unwrap_or_default();
        if failed.is_some() {
            rows.push(Row { name: area.name, budget, outcome: Outcome::NotRun });
            continue;
        }
        println!("\n==> {}: {} (budget {budget} s)", area.name, area.what);
        let begin = Instant::now();
        let result = area.check(project, pace);
        let took = begin.elapsed();
        match result {
            Ok(()) => {
                println!("==> {}: ok, {:.1} s", area.name, took.as_secs_f64());
                rows.push(Row { name: area.name, budget, outcome: Outcome::Passed(took) });
            }
            Err(reason) => {
                println!("==> {}: FAILED, {:.1} s", area.name, took.as_secs_f64());
                rows.push(Row { name: area.name, budget, outcome: Outcome::Failed(took) });
                failed = Some(Failure::Area { area: area.name, reason: Box::new(reason) });
            }
        }
    }
    print!("\n{}", table(&rows));
    // What follows goes to the error output; in a log that takes both, the table shall stand before it.
    let _ = std::io::stdout().flush();
    failed.map_or(Ok(()), Err)
}

fn table(rows: &[Row]) -> String {
    let mut text = format!("{:<10}  {:<7}  {:>9}  {:>8}\n", "area", "result", "took", "budget");
    for row in rows {
        let (result, took) = match row.outcome {
            Outcome::Passed(took) => ("ok", Some(took)),
            Outcome::Failed(took) => ("FAILED", Some(took)),
            Outcome::NotRun => ("not run", None),
        };
        let time = took.map_or_else(|| "-".to_owned(), |took| format!("{:.1} s", took.as_secs_f64()));
        let over =
            if took.is_some_and(|took| took > Duration::from_secs(row.budget)) { "  over" } else { "" };
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{:<10}  {result:<7}  {time:>9}  {:>6} s{over}", row.name, row.budget);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_passed_what_failed_and_what_was_not_reached() {
        let rows = [
            Row { name: "fmt", budget: 10, outcome: Outcome::Passed(Duration::from_millis(1_250)) },
            Row { name: "clippy", budget: 60, outcome: Outcome::Failed(Duration::from_secs(75)) },
            Row { name: "tests", budget: 900, outcome: Outcome::NotRun },
        ];
        let expected = "area        result        took    budget
fmt         ok           1.2 s      10 s
clippy      FAILED      75.0 s      60 s  over
tests       not run          -     900 s
";
        assert_eq!(table(&rows), expected);
    }
}

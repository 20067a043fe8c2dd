//! The command line: what was asked for, or why it cannot be done.

use std::fmt::Write as _;

use crate::areas::{self, AREAS, Area, Pace};
use crate::soak::Plan;

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Task {
    Help,
    Test {
        areas: Vec<&'static Area>,
        pace: Pace,
    },
    Soak(Plan),
    /// With the benches' own arguments.
    Bench(Vec<String>),
}

/// A command line that names nothing this tool can do.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum UsageError {
    #[error("there is no task `{given}`{}", hint(nearest.as_deref()))]
    UnknownTask { given: String, nearest: Option<String> },
    #[error("there is no area `{given}`{}", hint(nearest.as_deref()))]
    UnknownArea { given: String, nearest: Option<String> },
    #[error("`cargo xtask {task}` has no option `{given}`{}", hint(nearest.as_deref()))]
    UnknownOption { task: &'static str, given: String, nearest: Option<String> },
    #[error("the area `{given}` is not part of --quick; name it without --quick")]
    NotQuick { given: String },
    #[error("`{option}` needs a whole number{}", given.as_ref().map(|given| format!(", not `{given}`")).unwrap_or_default())]
    NotANumber { option: &'static str, given: Option<String> },
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// Reads the arguments behind `cargo xtask`.
pub(crate) fn parse(arguments: &[String]) -> Result<Task, UsageError> {
    let Some((task, rest)) = arguments.split_first() else { return Ok(Task::Help) };
    if task == "bench" {
        return Ok(Task::Bench(rest.to_vec()));
    }
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        return Ok(Task::Help);
    }
    match task.as_str() {
        "help" => Ok(Task::Help),
        "test" => parse_test(rest),
        "soak" => parse_soak(rest),
        other => Err(UsageError::UnknownTask {
            given: other.to_owned(),
            nearest: nearest(other, ["test", "soak", "bench", "help"]),
        }),
    }
}

fn parse_test(arguments: &[String]) -> Result<Task, UsageError> {
    let mut pace = Pace::Full;
    let mut named = Vec::new();
    for argument in arguments {
        if argument == "--quick" {
            pace = Pace::Quick;
        } else if argument.starts_with('-') {
            return Err(unknown_option("test", argument, &["--quick"]));
        } else {
            let area = areas::by_name(argument).ok_or_else(|| UsageError::UnknownArea {
                given: argument.clone(),
                nearest: nearest(argument, AREAS.iter().map(|area| area.name)),
            })?;
            named.push(area);
        }
    }
    if let Some(area) = named.iter().find(|area| area.budget(pace).is_none()) {
        return Err(UsageError::NotQuick { given: area.name.to_owned() });
    }
    Ok(Task::Test { areas: areas::select(&named, pace), pace })
}

fn parse_soak(arguments: &[String]) -> Result<Task, UsageError> {
    let mut plan = Plan::default();
    let mut rest = arguments.iter();
    while let Some(option) = rest.next() {
        match option.as_str() {
            "--minutes" => plan.minutes = number("--minutes", rest.next())?,
            "--storm-minutes" => plan.storm_minutes = number("--storm-minutes", rest.next())?,
            "--seed" => plan.seed = Some(number("--seed", rest.next())?),
            "--cases" => plan.cases = number("--cases", rest.next())?,
            other => {
                let known = ["--minutes", "--storm-minutes", "--seed", "--cases"];
                return Err(unknown_option("soak", other, &known));
            }
        }
    }
    Ok(Task::Soak(plan))
}

fn number(option: &'static str, given: Option<&String>) -> Result<u64, UsageError> {
    given
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| UsageError::NotANumber { option, given: given.cloned() })
}

fn unknown_option(task: &'static str, given: &str, known: &[&'static str]) -> UsageError {
    UsageError::UnknownOption {
        task,
        given: given.to_owned(),
        nearest: nearest(given, known.iter().copied()),
    }
}

fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(given, name), name))
        .filter(|(likeness, _)| *likeness > 0.6)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, name)| name.to_owned())
}

/// The help text, with the areas as they are in the table.
pub(crate) fn help() -> String {
    let mut text = String::from(
        "The project's own tools.

  cargo xtask test [--quick] [AREA...]
      Checks everything, or only the named areas, in the order below; stops at the first area that fails.
      --quick checks what fits in three minutes from a warm build (the areas marked q).

  cargo xtask soak [--minutes N] [--storm-minutes N] [--seed S] [--cases N]
      Runs the random tests of message delivery, and of the store under crashes and errors of the disk, with many cases,
      and kills the order pipeline many times, round after round, until the time is over. Then it has clients storm at a broker that
      is ended at random, for an hour unless told otherwise.
      Prints the seed of each round; the same seed and number of cases run the same histories again.

  cargo xtask bench [--only ROW] [--rounds N] [--seconds S] [--directory DIR] [--json FILE]
      Measures the journal beside what the disk can do and another broker, and prints one table.
      `cargo xtask bench --help` says more.

Areas:
",
    );
    for area in AREAS {
        let mark = if area.budget(Pace::Quick).is_some() { 'q' } else { ' ' };
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "  {mark} {:<10} {}", area.name, area.what);
    }
    text.push_str(
        "\nA budget is printed beside the time that an area took; to exceed it is never a failure.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<Task, UsageError> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    fn areas_of(line: &str) -> Vec<&'static str> {
        match parse_line(line).unwrap() {
            Task::Test { areas, .. } => areas.iter().map(|area| area.name).collect(),
            other => panic!("not a test task: {other:?}"),
        }
    }

    #[test]
    fn no_arguments_and_help_print_help() {
        for line in ["", "help", "--help", "test --help"] {
            assert!(matches!(parse_line(line), Ok(Task::Help)), "{line}");
        }
    }

    #[test]
    fn test_without_areas_runs_every_area() {
        assert_eq!(areas_of("test").len(), AREAS.len());
    }

    #[test]
    fn quick_leaves_out_the_slow_areas() {
        let quick = areas_of("test --quick");
        assert!(quick.contains(&"clippy"), "{quick:?}");
        assert!(!quick.contains(&"docs"), "{quick:?}");
    }

    #[test]
    fn named_areas_run_once_and_in_the_order_of_the_table() {
        assert_eq!(areas_of("test tests fmt tests"), ["fmt", "tests"]);
    }

    #[test]
    fn an_unknown_area_is_refused_with_the_nearest() {
        let error = parse_line("test clipy").unwrap_err();
        assert_eq!(error.to_string(), "there is no area `clipy`; did you mean `clippy`?");
    }

    #[test]
    fn a_name_that_is_like_nothing_gets_no_hint() {
        assert_eq!(parse_line("test qqq").unwrap_err().to_string(), "there is no area `qqq`");
    }

    #[test]
    fn an_unknown_task_or_option_is_refused_with_the_nearest() {
        assert_eq!(
            parse_line("tets").unwrap_err().to_string(),
            "there is no task `tets`; did you mean `test`?"
        );
        assert_eq!(
            parse_line("test --quik").unwrap_err().to_string(),
            "`cargo xtask test` has no option `--quik`; did you mean `--quick`?"
        );
    }

    #[test]
    fn a_slow_area_is_not_silently_dropped_by_quick() {
        assert_eq!(
            parse_line("test --quick docs").unwrap_err(),
            UsageError::NotQuick { given: "docs".to_owned() }
        );
    }

    #[test]
    fn soak_reads_its_options() {
        match parse_line("soak --minutes 3 --storm-minutes 4 --seed 77 --cases 9").unwrap() {
            Task::Soak(plan) => {
                let Plan { minutes, storm_minutes, seed, cases } = plan;
                assert_eq!((minutes, storm_minutes, seed, cases), (3, 4, Some(77), 9));
            }
            other => panic!("not a soak task: {other:?}"),
        }
    }

    #[test]
    fn soak_refuses_what_is_no_number() {
        assert_eq!(
            parse_line("soak --minutes ten").unwrap_err().to_string(),
            "`--minutes` needs a whole number, not `ten`"
        );
        assert_eq!(parse_line("soak --seed").unwrap_err().to_string(), "`--seed` needs a whole number");
    }

    #[test]
    fn the_benches_get_their_arguments_as_they_are() {
        match parse_line("bench --only p1 --help").unwrap() {
            Task::Bench(arguments) => assert_eq!(arguments, ["--only", "p1", "--help"]),
            other => panic!("not the benches: {other:?}"),
        }
    }

    #[test]
    fn help_names_every_area() {
        let text = help();
        for area in AREAS {
            assert!(text.contains(area.what), "{}", area.name);
        }
    }
}

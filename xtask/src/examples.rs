//! The examples: all are built, and those that show the main jobs are run as a user runs them.
//!
//! The examples' manifest says how one is run, if more than its name is needed:
//!
//! ```toml
//! [package.metadata.xtask.run]
//! quickstart = {}                                   # ends by itself
//! order_pipeline = { arguments = ["--orders", "50"] }
//! service = { until = "started" }                   # asked to end (SIGTERM) once it has printed this
//! ```

use crate::failure::Failure;
use crate::project::{ExampleRun, Package, Project};

const PACKAGE: &str = "corriere-examples";

/// Run even if the manifest does not mention them: the README's program, and the main job.
const ALWAYS: &[&str] = &["quickstart", "order_pipeline"];

/// Builds every example and runs those that are to be run; each must end well.
pub(crate) fn check(project: &Project) -> Result<(), Failure> {
    let packages = project.packages()?;
    let package = packages.iter().find(|package| package.name == PACKAGE);
    let runs = package.map(runs).unwrap_or_default();
    let missing = runs.iter().filter(|run| package.and_then(|package| kind(package, &run.name)).is_none());
    Failure::unless_empty(
        "the examples' package builds every example that is to be run; it does not build:",
        missing.map(|run| run.name.clone()).collect(),
    )?;
    project.cargo(&["build", "-p", PACKAGE, "--bins", "--examples"]).check()?;
    for run in &runs {
        if let Some(kind) = package.and_then(|package| kind(package, &run.name)) {
            perform(project, run, kind)?;
        }
    }
    Ok(())
}

fn perform(project: &Project, run: &ExampleRun, kind: &'static str) -> Result<(), Failure> {
    let mut arguments = vec!["run", "--quiet", "-p", PACKAGE, kind, &run.name];
    if !run.arguments.is_empty() {
        arguments.push("--");
        arguments.extend(run.arguments.iter().map(String::as_str));
    }
    let command = project.cargo(&arguments);
    match &run.until {
        None => command.check_ends(),
        Some(line) => command.check_ends_on_signal(line),
    }
}

/// What the manifest says, and what is always run, each once.
fn runs(package: &Package) -> Vec<ExampleRun> {
    let mut runs: Vec<ExampleRun> = ALWAYS
        .iter()
        .filter(|name| package.runs.iter().all(|run| run.name != **name))
        .map(|name| ExampleRun { name: (*name).to_owned(), arguments: Vec::new(), until: None })
        .collect();
    runs.extend(package.runs.iter().cloned());
    runs
}

/// Cargo's option for this target.
fn kind(package: &Package, name: &str) -> Option<&'static str> {
    if package.targets_of("example").any(|target| target == name) {
        Some("--example")
    } else if package.targets_of("bin").any(|target| target == name) {
        Some("--bin")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::project::Target;

    fn package(runs: Vec<ExampleRun>, targets: &[(&str, &str)]) -> Package {
        Package {
            name: PACKAGE.to_owned(),
            directory: PathBuf::from("examples"),
            dependencies: Vec::new(),
            targets: targets
                .iter()
                .map(|(kind, name)| Target { name: (*name).to_owned(), kind: (*kind).to_owned() })
                .collect(),
            features: Vec::new(),
            slow: Vec::new(),
            runs,
        }
    }

    #[test]
    fn the_manifest_says_how_and_the_main_jobs_are_never_left_out() {
        let quickstart = ExampleRun { name: "quickstart".into(), arguments: vec!["x".into()], until: None };
        let found = runs(&package(vec![quickstart.clone()], &[]));
        assert_eq!(
            found.iter().map(|run| run.name.as_str()).collect::<Vec<_>>(),
            ["order_pipeline", "quickstart"]
        );
        assert_eq!(found[1], quickstart);
    }

    #[test]
    fn an_example_is_an_example_or_a_program() {
        let package =
            package(Vec::new(), &[("example", "quickstart"), ("bin", "order_pipeline"), ("lib", "other")]);
        assert_eq!(kind(&package, "quickstart"), Some("--example"));
        assert_eq!(kind(&package, "order_pipeline"), Some("--bin"));
        assert_eq!(kind(&package, "other"), None);
    }
}

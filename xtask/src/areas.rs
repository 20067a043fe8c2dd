//! What `cargo xtask test` checks: one area after the other, the quick ones first.

use crate::failure::Failure;
use crate::project::{Package, Project};
use crate::{examples, floors, java, mail_server, readme, safety, soak, tree};

/// How thorough a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    Full,
    /// What fits in three minutes from a warm build.
    Quick,
}

/// One thing that is checked.
#[derive(Debug)]
pub(crate) struct Area {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// Seconds that it should take on two cores, from a cold build, and quickly from a warm one. They are printed
    /// beside the time taken; nothing fails by them.
    full: u64,
    quick: Option<u64>,
    check: fn(&Project, Pace) -> Result<(), Failure>,
}

impl Area {
    /// The budget in seconds; none if the area is not part of this pace.
    pub(crate) fn budget(&self, pace: Pace) -> Option<u64> {
        match pace {
            Pace::Full => Some(self.full),
            Pace::Quick => self.quick,
        }
    }

    pub(crate) fn check(&self, project: &Project, pace: Pace) -> Result<(), Failure> {
        (self.check)(project, pace)
    }
}

/// In the order in which they run.
pub(crate) const AREAS: &[Area] = &[
    Area {
        name: "lockfile",
        what: "Cargo.lock is current",
        full: 30,
        quick: Some(5),
        check: |project, _| tree::lockfile(project),
    },
    Area {
        name: "fmt",
        what: "the sources are formatted",
        full: 10,
        quick: Some(10),
        check: |project, _| {
            crate::process::Run::cargo_unlocked(project.root(), &["fmt", "--all", "--check"]).check()
        },
    },
    Area {
        name: "floors",
        what: "a crate names only what stands below it; the broker comes by `embedded`",
        full: 10,
        quick: Some(5),
        check: |project, _| floors::check(project),
    },
    Area {
        name: "unsafe",
        what: "no unsafe code outside the elements of `linkme` tables",
        full: 10,
        quick: Some(5),
        check: |project, _| safety::check(project),
    },
    Area {
        name: "tree",
        what: "`corriere` brings at most 100 crates",
        full: 10,
        quick: Some(5),
        check: |project, _| tree::check(project),
    },
    Area {
        name: "readme",
        what: "the README's program is the quickstart",
        full: 5,
        quick: Some(5),
        check: |project, _| readme::check(project),
    },
    Area {
        name: "clippy",
        what: "no lint on any target, with and without the embedded broker and the wire",
        full: 420,
        quick: Some(45),
        check: |project, _| clippy(project),
    },
    Area {
        name: "tests",
        what: "unit and integration tests (quick: few random cases, no test binary marked slow)",
        full: 1_700,
        quick: Some(120),
        check: tests,
    },
    Area {
        name: "doctests",
        what: "the examples in the documentation",
        full: 180,
        quick: None,
        check: |project, _| project.cargo(&["test", "--workspace", "--doc", "--no-fail-fast"]).check(),
    },
    Area {
        name: "docs",
        what: "the documentation builds without a warning",
        full: 180,
        quick: None,
        check: |project, _| {
            project.cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings").check()
        },
    },
    Area {
        name: "examples",
        what: "the examples build, and the main ones run to a good end",
        full: 300,
        quick: None,
        check: |project, _| examples::check(project),
    },
];

/// How many cases each random test makes in a quick run.
const QUICK_CASES: &str = "16";

pub(crate) fn by_name(name: &str) -> Option<&'static Area> {
    AREAS.iter().find(|area| area.name == name)
}

/// The areas that are named, or all that belong to the pace, in the order of the table.
pub(crate) fn select(named: &[&Area], pace: Pace) -> Vec<&'static Area> {
    let wanted = |area: &&Area| named.is_empty() || named.iter().any(|one| one.name == area.name);
    AREAS.iter().filter(|area| area.budget(pace).is_some()).filter(wanted).collect()
}

fn clippy(project: &Project) -> Result<(), Failure> {
    project.cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).check()?;
    for features in ["", "embedded", "openwire"] {
        let arguments = ["clippy", "-p", "corriere", "--no-default-features", "--features", features];
        project.cargo(&[&arguments[..], &["--", "-D", "warnings"]].concat()).check()?;
    }
    Ok(())
}

fn tests(project: &Project, pace: Pace) -> Result<(), Failure> {
    mail_server::prepare(project)?;
    if pace == Pace::Full {
        // Java's programs are tried on our broker, and our client on an ActiveMQ.
        java::prepare(project)?;
        return project.cargo(&["test", "--workspace", "--tests", "--no-fail-fast"]).check();
    }
    let packages = project.packages()?;
    let unknown = packages.iter().flat_map(unknown_slow).collect();
    Failure::unless_empty("a manifest marks as slow only test binaries that it has:", unknown)?;
    let binaries = quick_binaries(&packages);
    let mut arguments = vec!["test", "--workspace", "--lib", "--bins", "--no-fail-fast"];
    for binary in &binaries {
        arguments.extend(["--test", binary]);
    }
    project.cargo(&arguments).env(soak::CASES, QUICK_CASES).check()
}

/// The test binaries that no manifest marks as slow.
fn quick_binaries(packages: &[Package]) -> Vec<&str> {
    let is_quick = |package: &Package, name: &str| package.slow.iter().all(|slow| slow != name);
    packages
        .iter()
        .flat_map(|package| package.targets_of("test").filter(move |name| is_quick(package, name)))
        .collect()
}

fn unknown_slow(package: &Package) -> Vec<String> {
    let unknown =
        package.slow.iter().filter(|slow| package.targets_of("test").all(|name| name != slow.as_str()));
    unknown.map(|slow| format!("`{}` has no test binary `{slow}`", package.name)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::project::Target;

    fn package(tests: &[&str], slow: &[&str]) -> Package {
        Package {
            name: "corriere-tests".to_owned(),
            directory: PathBuf::from("tests"),
            dependencies: Vec::new(),
            targets: tests
                .iter()
                .map(|name| Target { name: (*name).to_owned(), kind: "test".to_owned() })
                .collect(),
            features: Vec::new(),
            slow: slow.iter().map(|name| (*name).to_owned()).collect(),
            runs: Vec::new(),
        }
    }

    #[test]
    fn the_quick_budgets_fit_in_three_minutes_and_a_half() {
        let total: u64 = AREAS.iter().filter_map(|area| area.budget(Pace::Quick)).sum();
        assert!(total <= 210, "{total} s");
    }

    #[test]
    fn the_full_budgets_fit_in_what_ci_allows() {
        let total: u64 = AREAS.iter().filter_map(|area| area.budget(Pace::Full)).sum();
        assert!(total <= 90 * 60, "{total} s");
    }

    #[test]
    fn names_are_not_used_twice() {
        for area in AREAS {
            assert_eq!(AREAS.iter().filter(|other| other.name == area.name).count(), 1, "{}", area.name);
        }
    }

    #[test]
    fn slow_binaries_are_left_out_of_a_quick_run() {
        assert_eq!(quick_binaries(&[package(&["delivery", "ui"], &["ui"])]), ["delivery"]);
    }

    #[test]
    fn a_slow_binary_that_does_not_exist_is_noticed() {
        assert_eq!(unknown_slow(&package(&["ui"], &["uy"])), ["`corriere-tests` has no test binary `uy`"]);
    }
}

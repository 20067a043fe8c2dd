//! The lean tree: how many crates a user's build gets with `corriere`.

use std::collections::{BTreeMap, BTreeSet};

use crate::failure::Failure;
use crate::project::Project;

/// The most crates that `corriere` may bring, itself and build dependencies included.
const MOST_CRATES: usize = 100;

pub(crate) fn check(project: &Project) -> Result<(), Failure> {
    let arguments = ["tree", "-p", "corriere", "-e", "normal,build", "--prefix", "none"];
    let crates = crates(&project.cargo(&arguments).output()?);
    println!("    {} crates in the tree of `corriere`, at most {MOST_CRATES} are allowed", crates.len());
    for (name, versions) in several_versions(&crates) {
        println!("    note: `{name}` is there in several versions: {}", versions.join(", "));
    }
    judge(&crates)
}

/// The lockfile is current if cargo can resolve the workspace without changing it.
pub(crate) fn lockfile(project: &Project) -> Result<(), Failure> {
    project.cargo(&["tree", "--workspace", "--depth", "0"]).output().map(|_| ())
}

fn judge(crates: &BTreeSet<String>) -> Result<(), Failure> {
    let findings = if crates.len() > MOST_CRATES { crates.iter().cloned().collect() } else { Vec::new() };
    Failure::unless_empty("the tree of `corriere` has grown beyond what is allowed; it holds:", findings)
}

/// `name version` of each crate that `cargo tree --prefix none` printed, once.
pub(crate) fn crates(tree: &str) -> BTreeSet<String> {
    tree.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (name, version) = (words.next()?, words.next()?);
            version.starts_with('v').then(|| format!("{name} {version}"))
        })
        .collect()
}

fn several_versions(crates: &BTreeSet<String>) -> BTreeMap<&str, Vec<&str>> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, version) in crates.iter().filter_map(|one| one.split_once(' ')) {
        versions.entry(name).or_default().push(version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    versions
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "corriere v0.1.0 (/house)
async-trait v0.1.92 (proc-macro)
syn v3.0.10

[build-dependencies]
async-trait v0.1.92 (proc-macro) (*)
syn v2.0.1
";

    #[test]
    fn each_crate_counts_once() {
        let found: Vec<_> = crates(TREE).into_iter().collect();
        assert_eq!(found, ["async-trait v0.1.92", "corriere v0.1.0", "syn v2.0.1", "syn v3.0.10"]);
    }

    #[test]
    fn a_crate_in_two_versions_is_noticed() {
        let crates = crates(TREE);
        let found = several_versions(&crates);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [("syn", vec!["v2.0.1", "v3.0.10"])]);
    }

    #[test]
    fn a_tree_beyond_the_limit_is_refused_by_name() {
        let at_limit: BTreeSet<_> = (0..MOST_CRATES).map(|number| format!("crate{number} v1.0.0")).collect();
        judge(&at_limit).unwrap();
        let beyond: BTreeSet<_> = at_limit.into_iter().chain(["one-more v1.0.0".to_owned()]).collect();
        assert!(judge(&beyond).unwrap_err().to_string().contains("one-more v1.0.0"));
    }
}

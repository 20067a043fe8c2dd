//! The floors of the house: a crate names only what stands below it (docs/architecture.md).
//!
//! Dev-dependencies are left out: a test may stand on any floor.

use crate::failure::Failure;
use crate::project::{Package, Project};
use crate::source::{code_only, has_word};
use crate::tree;

/// One floor, and what it may name of our own.
#[derive(Debug)]
struct Floor {
    name: &'static str,
    below: &'static [&'static str],
    /// Named only behind a feature.
    optional: &'static [&'static str],
}

const CORE: &str = "corriere-core";
const BROKER: &str = "corriere-broker";
const TEMPLATES: &str = "corriere-templates";
const OPENWIRE: &str = "corriere-openwire";
const CONTAINER: &str = "corriere-container";
const MACROS: &str = "corriere-macros";
const FACE: &str = "corriere";

/// Lowest first.
const FLOORS: &[Floor] = &[
    Floor { name: CORE, below: &[], optional: &[] },
    Floor { name: MACROS, below: &[], optional: &[] },
    Floor { name: BROKER, below: &[CORE], optional: &[] },
    Floor { name: TEMPLATES, below: &[CORE], optional: &[] },
    Floor { name: CONTAINER, below: &[CORE, TEMPLATES], optional: &[BROKER, OPENWIRE] },
    Floor { name: FACE, below: &[CORE, TEMPLATES, CONTAINER, MACROS], optional: &[BROKER, OPENWIRE] },
    // Examples see what a user sees.
    Floor { name: "corriere-examples", below: &[FACE], optional: &[] },
    Floor {
        name: "corriere-tests",
        below: &[CORE, MACROS, BROKER, TEMPLATES, OPENWIRE, CONTAINER, FACE],
        optional: &[],
    },
    // So do the benches.
    Floor { name: "corriere-benches", below: &[FACE], optional: &[] },
    Floor { name: "xtask", below: &[], optional: &[] },
];

/// The one feature that brings the broker to a crate for which it is optional.
const EMBEDDED: &str = "embedded";

/// What the delivery logic must not know: it is a pure state machine, so that any history can be replayed.
const IMPURE: &[&str] = &["tokio", "thread", "Instant", "SystemTime", "File", "TcpStream", "UdpSocket"];

const RULE: &str = "a crate names only what stands below it (see docs/architecture.md):";

pub(crate) fn check(project: &Project) -> Result<(), Failure> {
    let packages = project.packages()?;
    let mut findings: Vec<String> = packages.iter().flat_map(against_floors).collect();
    for name in [CONTAINER, FACE] {
        if let Some(package) = packages.iter().find(|package| package.name == name) {
            findings.extend(against_embedded(package));
        }
    }
    findings.extend(broker_without_embedded(project)?);
    for path in project.sources()? {
        if path.starts_with("broker/src/machine") {
            let found = named(&project.read(&path)?, IMPURE);
            findings.extend(found.into_iter().map(|(line, word)| {
                format!("{}:{line}: the delivery logic is pure, but names `{word}`", path.display())
            }));
        }
    }
    println!("    {} crates", packages.len());
    Failure::unless_empty(RULE, findings)
}

fn against_floors(package: &Package) -> Vec<String> {
    let Some((below, optional)) = floor_of(package) else {
        return vec![format!("`{}` has no floor yet; give it one in xtask/src/floors.rs", package.name)];
    };
    let ours = package.dependencies.iter().filter(|one| !one.only_tests && is_ours(&one.name));
    ours.filter_map(|dependency| {
        let name = dependency.name.as_str();
        if below.contains(&name) || (optional.contains(&name) && dependency.optional) {
            None
        } else if optional.contains(&name) {
            Some(format!(
                "`{}` names `{name}`, which it may name only as an optional dependency",
                package.name
            ))
        } else {
            Some(format!("`{}` names `{name}`, which does not stand below it", package.name))
        }
    })
    .collect()
}

fn floor_of(package: &Package) -> Option<(&'static [&'static str], &'static [&'static str])> {
    // A transport knows the seam, not what is behind it.
    if package.directory.starts_with("transports") {
        return Some((&[CORE], &[]));
    }
    FLOORS.iter().find(|floor| floor.name == package.name).map(|floor| (floor.below, floor.optional))
}

fn is_ours(name: &str) -> bool {
    name == FACE || name == "xtask" || name.starts_with("corriere-")
}

/// `embedded` brings the broker, nothing else does, and it is on by default.
fn against_embedded(package: &Package) -> Vec<String> {
    let parts = |name: &str| package.features.iter().find(|one| one.0 == name).map(|one| one.1.as_slice());
    let brings_broker = |parts: &[String]| {
        parts.iter().any(|part| {
            let part = part.strip_prefix("dep:").unwrap_or(part);
            part == BROKER || part.strip_prefix(BROKER).is_some_and(|rest| rest.starts_with('/'))
        })
    };
    let mut findings = Vec::new();
    if !parts(EMBEDDED).is_some_and(brings_broker) {
        findings.push(format!("`{}`: the feature `{EMBEDDED}` does not bring `{BROKER}`", package.name));
    }
    if !parts("default").is_some_and(|parts| parts.iter().any(|part| part == EMBEDDED)) {
        findings.push(format!("`{}`: the feature `{EMBEDDED}` is not on by default", package.name));
    }
    let others = package.features.iter().filter(|(name, parts)| name != EMBEDDED && brings_broker(parts));
    findings.extend(
        others.map(|(name, _)| format!("`{}`: the feature `{name}` brings `{BROKER}`", package.name)),
    );
    findings
}

fn broker_without_embedded(project: &Project) -> Result<Option<String>, Failure> {
    let arguments = ["tree", "-p", FACE, "--no-default-features", "-e", "normal", "--prefix", "none"];
    let crates = tree::crates(&project.cargo(&arguments).output()?);
    let broker = crates.iter().find(|one| one.split(' ').next() == Some(BROKER));
    Ok(broker.map(|_| format!("`{FACE}` without default features still brings `{BROKER}`")))
}

/// The lines, counted from one, that name one of `words` outside the file's tests.
fn named(text: &str, words: &[&'static str]) -> Vec<(usize, &'static str)> {
    let code = code_only(text);
    let before_tests = code.lines().take_while(|line| line.trim() != "#[cfg(test)]");
    before_tests
        .enumerate()
        .flat_map(|(index, line)| {
            words.iter().filter(move |word| has_word(line, word)).map(move |word| (index + 1, *word))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::project::Dependency;

    use super::*;

    fn package(name: &str, directory: &str, dependencies: &[(&str, bool, bool)]) -> Package {
        let dependencies = dependencies
            .iter()
            .map(|&(name, optional, only_tests)| Dependency { name: name.to_owned(), optional, only_tests })
            .collect();
        Package {
            name: name.to_owned(),
            directory: Path::new(directory).to_path_buf(),
            dependencies,
            targets: Vec::new(),
            features: Vec::new(),
            slow: Vec::new(),
            runs: Vec::new(),
        }
    }

    fn features(features: &[(&str, &[&str])]) -> Package {
        let mut package = package(CONTAINER, "container", &[]);
        package.features = features
            .iter()
            .map(|(name, parts)| ((*name).to_owned(), parts.iter().map(|part| (*part).to_owned()).collect()))
            .collect();
        package
    }

    #[test]
    fn what_stands_below_may_be_named() {
        let dependencies = [(CORE, false, false), (TEMPLATES, false, false), (BROKER, true, false)];
        assert!(against_floors(&package(CONTAINER, "container", &dependencies)).is_empty());
    }

    #[test]
    fn what_stands_above_may_not_be_named() {
        let found =
            against_floors(&package(BROKER, "broker", &[(CORE, false, false), (CONTAINER, false, false)]));
        assert_eq!(found, ["`corriere-broker` names `corriere-container`, which does not stand below it"]);
        assert_eq!(against_floors(&package(MACROS, "macros", &[(CORE, false, false)])).len(), 1);
    }

    #[test]
    fn the_container_names_the_broker_only_behind_a_feature() {
        assert_eq!(against_floors(&package(CONTAINER, "container", &[(BROKER, false, false)])).len(), 1);
    }

    #[test]
    fn a_test_may_stand_on_any_floor_and_strangers_are_free() {
        let dependencies = [(BROKER, false, true), ("tokio", false, false)];
        assert!(against_floors(&package(TEMPLATES, "templates", &dependencies)).is_empty());
    }

    #[test]
    fn a_crate_without_a_floor_is_noticed_but_transports_have_one() {
        assert_eq!(against_floors(&package("corriere-attic", "attic", &[])).len(), 1);
        let dependencies = [(CORE, false, false), (BROKER, false, false)];
        let transport = package("corriere-openwire", "transports/openwire", &dependencies);
        assert_eq!(
            against_floors(&transport),
            ["`corriere-openwire` names `corriere-broker`, which does not stand below it"]
        );
    }

    #[test]
    fn only_the_default_feature_embedded_brings_the_broker() {
        let good = features(&[("default", &["embedded"]), ("embedded", &["dep:corriere-broker"])]);
        assert!(against_embedded(&good).is_empty());
        let bad =
            features(&[("default", &["extra"]), ("embedded", &[]), ("extra", &["corriere-broker/full"])]);
        assert_eq!(against_embedded(&bad).len(), 3);
    }

    #[test]
    fn impurity_is_found_in_code_and_not_in_comments_or_tests() {
        let text =
            "// no tokio here\nuse std::time::Instant;\n#[cfg(test)]\nmod tests { use tokio::test; }\n";
        assert_eq!(named(text, IMPURE), [(2, "Instant")]);
    }
}

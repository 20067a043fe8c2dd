//! The project as cargo sees it: where it is, and which packages it has.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::Failure;
use crate::process::Run;

/// The workspace around the current directory.
#[derive(Debug)]
pub(crate) struct Project {
    root: PathBuf,
}

impl Project {
    /// Finds the workspace from any directory inside it.
    pub(crate) fn locate() -> Result<Project, Failure> {
        let arguments = ["locate-project", "--workspace", "--message-format", "plain"];
        let manifest = Run::cargo_unlocked(Path::new("."), &arguments).output()?;
        let root = Path::new(manifest.trim()).parent().map(Path::to_path_buf).unwrap_or_default();
        Ok(Project { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Cargo in the project's root; see [`Run::cargo`].
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Run {
        Run::cargo(&self.root, arguments)
    }

    /// Reads a file below the root.
    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Result<String, Failure> {
        let path = self.root.join(path);
        fs::read_to_string(&path).map_err(|source| Failure::File { path, source })
    }

    /// The workspace's own packages, without their dependencies' details.
    pub(crate) fn packages(&self) -> Result<Vec<Package>, Failure> {
        let text = self.cargo(&["metadata", "--no-deps", "--format-version", "1"]).output()?;
        let metadata: Value = serde_json::from_str(&text).map_err(|source| Failure::Output {
            command: "cargo metadata".to_owned(),
            expected: "JSON",
            source,
        })?;
        Ok(packages(&metadata, &self.root))
    }

    /// Every Rust source file of the project, as paths below the root, in order.
    pub(crate) fn sources(&self) -> Result<Vec<PathBuf>, Failure> {
        let mut found = Vec::new();
        let mut open = vec![self.root.clone()];
        while let Some(directory) = open.pop() {
            let fault = |source| Failure::File { path: directory.clone(), source };
            for entry in fs::read_dir(&directory).map_err(fault)? {
                let entry = entry.map_err(fault)?;
                let kind = entry.file_type().map_err(fault)?;
                let name = entry.file_name();
                let name = name.to_string_lossy();
                if kind.is_dir() && name != "target" && !name.starts_with('.') {
                    open.push(entry.path());
                } else if kind.is_file() && name.ends_with(".rs") {
                    let path = entry.path();
                    found.push(path.strip_prefix(&self.root).map(Path::to_path_buf).unwrap_or(path));
                }
            }
        }
        found.sort();
        Ok(found)
    }
}

/// One package of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// The directory below the root; empty for the package in the root.
    pub(crate) directory: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
    /// Each feature with what it switches on.
    pub(crate) features: Vec<(String, Vec<String>)>,
    /// Test binaries which the package declares as slow: `[package.metadata.xtask] slow = ["NAME"]`.
    pub(crate) slow: Vec<String>,
    /// How the examples of the package are run: `[package.metadata.xtask.run]`.
    pub(crate) runs: Vec<ExampleRun>,
}

/// One run of an example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExampleRun {
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
    /// It does not end by itself, but is asked to end once it has printed this.
    pub(crate) until: Option<String>,
}

/// What a package names in its manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) optional: bool,
    /// Named under `[dev-dependencies]`: only tests see it.
    pub(crate) only_tests: bool,
}

/// What cargo builds from a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) name: String,
    /// `lib`, `bin`, `example`, `test`, `bench`, …
    pub(crate) kind: String,
}

impl Package {
    /// The names of the targets of one kind.
    pub(crate) fn targets_of(&self, kind: &str) -> impl Iterator<Item = &str> {
        self.targets.iter().filter(move |target| target.kind == kind).map(|target| target.name.as_str())
    }
}

fn packages(metadata: &Value, root: &Path) -> Vec<Package> {
    items(&metadata["packages"]).map(|package| read_package(package, root)).collect()
}

fn read_package(package: &Value, root: &Path) -> Package {
    let directory = Path::new(text(&package["manifest_path"])).parent().unwrap_or(Path::new(""));
    Package {
        name: text(&package["name"]).to_owned(),
        directory: directory.strip_prefix(root).unwrap_or(directory).to_path_buf(),
        dependencies: items(&package["dependencies"])
            .map(|dependency| Dependency {
                name: text(&dependency["name"]).to_owned(),
                optional: dependency["optional"] == true,
                only_tests: dependency["kind"] == "dev",
            })
            .collect(),
        targets: items(&package["targets"])
            .map(|target| Target {
                name: text(&target["name"]).to_owned(),
                kind: text(&target["kind"][0]).to_owned(),
            })
            .collect(),
        features: entries(&package["features"]).map(|(name, parts)| (name.clone(), strings(parts))).collect(),
        slow: strings(&package["metadata"]["xtask"]["slow"]),
        runs: entries(&package["metadata"]["xtask"]["run"])
            .map(|(name, run)| ExampleRun {
                name: name.clone(),
                arguments: strings(&run["arguments"]),
                until: run["until"].as_str().map(str::to_owned),
            })
            .collect(),
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn strings(value: &Value) -> Vec<String> {
    items(value).map(|part| text(part).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_is_read_into_packages() {
        let metadata = json!({ "packages": [{
            "name": "corriere-container",
            "manifest_path": "/house/container/Cargo.toml",
            "dependencies": [
                { "name": "corriere-core", "kind": null, "optional": false },
                { "name": "corriere-broker", "kind": null, "optional": true },
                { "name": "tempfile", "kind": "dev", "optional": false },
            ],
            "targets": [{ "name": "delivery", "kind": ["test"] }],
            "features": { "embedded": ["dep:corriere-broker"] },
            "metadata": { "xtask": {
                "slow": ["delivery"],
                "run": { "chat": { "arguments": ["alice"], "until": "ready" }, "quickstart": {} },
            } },
        }]});
        let package = packages(&metadata, Path::new("/house")).remove(0);
        assert_eq!(package.name, "corriere-container");
        assert_eq!(package.directory, Path::new("container"));
        let optional: Vec<_> =
            package.dependencies.iter().map(|one| (one.optional, one.only_tests)).collect();
        assert_eq!(optional, [(false, false), (true, false), (false, true)]);
        assert_eq!(package.targets_of("test").collect::<Vec<_>>(), ["delivery"]);
        assert_eq!(package.targets_of("example").count(), 0);
        assert_eq!(package.features, [("embedded".to_owned(), vec!["dep:corriere-broker".to_owned()])]);
        assert_eq!(package.slow, ["delivery"]);
        let runs: Vec<_> = package.runs.iter().map(|run| (run.name.as_str(), run.until.as_deref())).collect();
        assert_eq!(runs, [("chat", Some("ready")), ("quickstart", None)]);
        assert_eq!(package.runs[0].arguments, ["alice"]);
    }

    #[test]
    fn a_package_without_metadata_has_no_slow_tests() {
        let metadata = json!({ "packages": [{ "name": "corriere", "manifest_path": "/house/Cargo.toml", "metadata": null }]});
        let package = packages(&metadata, Path::new("/house")).remove(0);
        assert_eq!(package.directory, Path::new(""));
        assert!(package.slow.is_empty());
    }
}

//! No `unsafe` in our sources. The lint is denied in every crate, and allowed only on an element of a `linkme` table.

use crate::failure::Failure;
use crate::project::Project;
use crate::source::{code_only, has_word};

const RULE: &str = "unsafe code is denied everywhere and allowed only on elements of `linkme` tables:";

pub(crate) fn check(project: &Project) -> Result<(), Failure> {
    let mut findings = Vec::new();
    for package in project.packages()? {
        let manifest = package.directory.join("Cargo.toml");
        if !inherits_lints(&project.read(&manifest)?) {
            findings.push(format!("{}: `[lints] workspace = true` is missing", manifest.display()));
        }
    }
    let mut sources = project.sources()?;
    // What is made up there never compiles, and some of it is refused for being unsafe.
    sources.retain(|path| !path.starts_with("tests/ui"));
    println!("    {} source files", sources.len());
    for path in sources {
        let found = uses(&project.read(&path)?);
        findings.extend(found.into_iter().map(|(line, what)| format!("{}:{line}: {what}", path.display())));
    }
    Failure::unless_empty(RULE, findings)
}

/// Whether a manifest takes over the workspace's lints.
fn inherits_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
    lines.find(|line| !line.is_empty()).is_some_and(|line| line.replace(' ', "") == "workspace=true")
}

/// The lines, counted from one, that are against the rule.
fn uses(text: &str) -> Vec<(usize, &'static str)> {
    let code = code_only(text);
    let code: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (index, line) in code.iter().enumerate() {
        if has_word(line, "unsafe") {
            found.push((index + 1, "unsafe code"));
        }
        let raises = has_word(line, "deny") || has_word(line, "forbid");
        if has_word(line, "unsafe_code") && !raises && !on_table_element(text, &code, index) {
            found.push((
                index + 1,
                "the lint `unsafe_code` is lowered on something else than a table's element",
            ));
        }
    }
    found
}

/// Whether the block of lines around `index`, up to an empty line on either side, is an element of a table.
fn on_table_element(text: &str, code: &[&str], index: usize) -> bool {
    let empty: Vec<bool> = text.lines().map(|line| line.trim().is_empty()).collect();
    let start = (0..index).rev().find(|at| empty[*at]).map_or(0, |at| at + 1);
    let end = (index..code.len()).find(|at| empty[*at]).unwrap_or(code.len());
    let inner_attribute = code[index].trim_start().starts_with("#!");
    !inner_attribute && code[start..end].iter().any(|line| has_word(line, "distributed_slice"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_is_found_with_its_line() {
        assert_eq!(uses("fn f() {\n    unsafe { g() }\n}\n"), [(2, "unsafe code")]);
    }

    #[test]
    fn the_word_in_comments_and_texts_is_no_use() {
        assert!(uses("// unsafe\nconst WORD: &str = \"unsafe\";\n").is_empty());
    }

    #[test]
    fn denying_and_forbidding_the_lint_is_welcome() {
        assert!(uses("#![forbid(unsafe_code)]\n#![deny(unsafe_code)]\n").is_empty());
    }

    #[test]
    fn a_table_element_may_lower_the_lint() {
        let element = "/// A key.\n#[allow(unsafe_code, reason = \"linkme\")]\n#[distributed_slice(KEYS)]\nstatic KEY: Key = Key;\n";
        assert!(uses(element).is_empty());
    }

    #[test]
    fn the_permission_ends_with_the_element() {
        let text = "#[distributed_slice(KEYS)]\nstatic KEY: Key = Key;\n\n#[allow(unsafe_code)]\nfn f() {}\n";
        assert_eq!(uses(text).len(), 1);
        assert_eq!(uses("#![allow(unsafe_code)]\nuse linkme::distributed_slice;\n").len(), 1);
    }

    #[test]
    fn lints_are_inherited_only_by_saying_so() {
        assert!(inherits_lints("[package]\nname = \"x\"\n\n[lints]\nworkspace = true\n"));
        assert!(!inherits_lints("[package]\nname = \"x\"\n"));
        assert!(!inherits_lints("[lints]\n\n[features]\nworkspace = []\n"));
    }
}

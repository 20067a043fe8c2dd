//! The README shows a program; it must be the one that the examples run.

use crate::failure::Failure;
use crate::project::Project;

const README: &str = "README.md";
const PROGRAM: &str = "examples/quickstart/main.rs";
const SETTINGS: &str = "examples/quickstart/config.toml";

pub(crate) fn check(project: &Project) -> Result<(), Failure> {
    let readme = project.read(README)?;
    let mut findings = Vec::new();
    for (language, path) in [("rust", PROGRAM), ("toml", SETTINGS)] {
        if project.root().join(path).exists() || path == PROGRAM {
            let text = project.read(path)?;
            println!("    {path}");
            if !shows(&readme, language, &text) {
                findings.push(format!("no ```{language} block of {README} is {path}, line by line"));
            }
        }
    }
    Failure::unless_empty("the README shows the quickstart as it is run:", findings)
}

/// Whether one of the README's blocks is this text. The comment about the file at its top may be missing there.
fn shows(readme: &str, language: &str, text: &str) -> bool {
    blocks(readme, language).iter().any(|block| comparable(block) == comparable(text))
}

fn comparable(text: &str) -> Vec<&str> {
    let lines = text.trim().lines().map(str::trim_end);
    lines.skip_while(|line| line.is_empty() || line.starts_with("//!")).collect()
}

/// The contents of the fenced blocks in `language`.
fn blocks(markdown: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| line.trim_end() != "```").collect();
        // Behind the language may stand what rustdoc or a highlighter wants to know: `rust,no_run`.
        if info.split([',', ' ']).next() == Some(language) {
            found.push(body.join("\n"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = "# Title\n\n```toml\na = 1\n```\n\n```rust,no_run\nfn main() {\n    run();\n}\n```\n\n```sh\nls\n```\n";

    #[test]
    fn blocks_are_found_by_language() {
        assert_eq!(blocks(README, "toml"), ["a = 1"]);
        assert_eq!(blocks(README, "rust"), ["fn main() {\n    run();\n}"]);
        assert!(blocks(README, "java").is_empty());
    }

    #[test]
    fn the_program_may_have_a_comment_about_itself() {
        assert!(shows(README, "rust", "//! The first steps.\n\nfn main() {\n    run();\n}\n"));
    }

    #[test]
    fn any_other_difference_is_seen() {
        assert!(!shows(README, "rust", "fn main() {\n    walk();\n}\n"));
        assert!(!shows(README, "rust", "fn main() {\n    run();\n}\nfn more() {}\n"));
        assert!(!shows(README, "toml", "fn main() {\n    run();\n}\n"));
    }

    #[test]
    fn a_block_without_an_end_does_not_hang() {
        assert_eq!(blocks("```rust\nfn main() {}", "rust"), ["fn main() {}"]);
    }
}

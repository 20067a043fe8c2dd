//! The README shows programs that exist.

use std::fs;

use crate::program::workspace;

#[test]
fn the_readme_shows_the_quickstart_as_it_is() {
    let readme = fs::read_to_string(workspace().join("README.md")).unwrap();
    for (file, language) in [("main.rs", "rust"), ("config.toml", "toml")] {
        let text = fs::read_to_string(workspace().join("examples/quickstart").join(file)).unwrap();
        assert!(
            readme.contains(&format!("```{language}\n{text}```\n")),
            "quickstart/{file} is not in README.md"
        );
    }
}

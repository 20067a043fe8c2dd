//! Tests in the source, by their path: `binary::module::test`.

use std::path::{Path, PathBuf};

/// What is wrong with the source of a test that is to show a case; `None` when it is there, is run, and its documentation
/// names the case.
pub(crate) fn fault(test: &str, id: &str) -> Option<String> {
    let Some((module, name)) = test.rsplit_once("::") else {
        return Some("expected `binary::module::test`".to_owned());
    };
    let Some(source) = sources(module).into_iter().find_map(|path| std::fs::read_to_string(path).ok()) else {
        return Some("there is no such module".to_owned());
    };
    let lines: Vec<_> = source.lines().collect();
    let Some(at) = lines.iter().position(|line| is_function(line, name)) else {
        return Some("its module has no such function".to_owned());
    };
    let above: Vec<_> = lines.iter().take(at).rev().take_while(|line| is_about_what_follows(line)).collect();
    let is_test = above.iter().any(|line| line.contains("test]") || line.contains("test(flavor"));
    let is_in_macro = source
        .split_once("over_each_peer! {")
        .and_then(|(_, rest)| rest.split_once('}'))
        .is_some_and(|(names, _)| names.split(',').any(|listed| listed.trim() == name));
    if !is_test && !is_in_macro {
        return Some("it is a function that nothing runs".to_owned());
    }
    let is_named = above.iter().any(|line| line.trim_start().starts_with("///") && names(line, id));
    (!is_named).then(|| format!("its documentation does not say {id}"))
}

/// Where the source of a module may be: in this crate, or with the tests of the broker.
fn sources(module: &str) -> Vec<PathBuf> {
    let file = module.replace("::", "/");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let broker = here.join("../broker/tests");
    [here, &broker].map(|folder| folder.join(&file).with_extension("rs")).into()
}

fn is_function(line: &str, name: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("fn ")
        .and_then(|rest| rest.strip_prefix(name))
        .is_some_and(|rest| rest.starts_with('('))
}

fn is_about_what_follows(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("///") || line.starts_with("#[")
}

/// Whether `id` is there, and not as the beginning of a longer one.
fn names(line: &str, id: &str) -> bool {
    line.match_indices(id).any(|(at, _)| {
        let behind = line.get(at + id.len()..).and_then(|rest| rest.chars().next());
        !behind.is_some_and(|character| character.is_ascii_digit())
    })
}

#[test]
fn a_test_that_is_not_there_or_says_another_case_is_found_out() {
    let shown = "client::acknowledging::a_second_acknowledgement_changes_nothing_and_the_next_one_works";
    assert_eq!(fault(shown, "C-07"), None);
    assert_eq!(fault(shown, "C-0").as_deref(), Some("its documentation does not say C-0"));
    assert!(fault("client::acknowledging::redeliver", "C-07").unwrap().contains("nothing runs"));
    assert!(fault("client::acknowledging::nothing", "C-07").unwrap().contains("no such function"));
    assert!(fault("client::nowhere::nothing", "C-07").unwrap().contains("no such module"));
    assert!(fault("nothing", "C-07").unwrap().contains("expected"));
}

//! The lines on which the keys of a TOML text stand.
//!
//! The `config` crate keeps the file of a value but not its line. The text is known to be valid TOML when this looks
//! at it, so finding table headers and keys at the start of lines is enough; a key within an inline table is found at
//! the key that the inline table belongs to.

use std::collections::HashMap;

use super::key_path;

#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(HashMap<Vec<String>, usize>);

impl Lines {
    pub(crate) fn of(text: &str) -> Self {
        let mut lines = HashMap::new();
        let mut table: Vec<String> = Vec::new();
        let mut within_text: Option<&str> = None;
        for (number, line) in text.lines().enumerate() {
            if let Some(quotes) = within_text {
                if line.contains(quotes) {
                    within_text = None;
                }
                continue;
            }
            let line_number = number + 1;
            let trimmed = line.trim_start();
            if let Some(header) = trimmed.strip_prefix('[') {
                if let Some((path, _)) = key_path::begin(header.trim_start_matches('['))
                    && !path.is_empty()
                {
                    table = path;
                    lines.entry(table.clone()).or_insert(line_number);
                }
            } else if let Some((path, behind)) = key_path::begin(trimmed)
                && behind.starts_with('=')
            {
                let mut whole = table.clone();
                whole.extend(path);
                lines.entry(whole).or_insert(line_number);
            }
            within_text = ["\"\"\"", "'''"].into_iter().find(|quotes| line.matches(quotes).count() % 2 == 1);
        }
        Self(lines)
    }

    /// The line of a key, or of the nearest table around it that has one.
    pub(crate) fn line(&self, path: &[&str]) -> Option<usize> {
        (1..=path.len()).rev().find_map(|length| {
            let path: Vec<String> = path[..length].iter().map(ToString::to_string).collect();
            self.0.get(&path).copied()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_under_their_tables() {
        let lines = Lines::of(
            "# a comment\n[broker]\nname = \"local\"\n\n[ templates . \"order.template\" ]\nreceive_timeout = 5\n\
             note = \"\"\"\nname = 1\n\"\"\"\nlast = 1\n[destinations]\norders = { queue = \"x\" }\n",
        );
        assert_eq!(lines.line(&["broker", "name"]), Some(3));
        assert_eq!(lines.line(&["templates", "order.template", "receive_timeout"]), Some(6));
        assert_eq!(lines.line(&["templates", "order.template", "last"]), Some(10));
        assert_eq!(lines.line(&["destinations", "orders", "queue"]), Some(12));
        assert_eq!(lines.line(&["broker", "absent"]), Some(2));
        assert_eq!(lines.line(&["beans"]), None);
    }
}

//! The texts that a configuration is made of, and how errors show a part of one.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::positions::Positions;
use super::secret::{self, MASK};

/// Characters of a line that are shown.
const WIDTH: usize = 100;

/// A text that keys and values stand in. Shown for debugging without the text, which may hold secrets.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Source {
    text: String,
    has_lines: bool,
    /// Parts that are not shown as they are, by their start, with what is shown instead.
    masked: Vec<(Range<usize>, String)>,
}

impl Source {
    /// A TOML file.
    pub(super) fn file(text: &str, positions: &Positions) -> Self {
        let mut masked = Vec::new();
        for (path, position) in positions.iter().filter(|(_, position)| !position.is_table) {
            let is_secret = path.iter().skip(1).any(|name| secret::is_name(name));
            let value = &text[position.value.clone()];
            if is_secret && !secret::is_reference(value.trim_matches(['"', '\''])) {
                masked.push((position.value.clone(), MASK.to_owned()));
            } else if value.starts_with(['"', '\'']) {
                for password in secret::passwords(value) {
                    let start = position.value.start;
                    masked.push((start + password.start..start + password.end, MASK.to_owned()));
                }
            }
        }
        // A list before its items, which are behind it then.
        masked.sort_unstable_by_key(|(range, _)| (range.start, Reverse(range.end)));
        Self { text: text.to_owned(), has_lines: true, masked }
    }

    /// A text that is no TOML. What is a secret in it can only be guessed, so no text in quotes is shown.
    pub(super) fn broken_file(text: &str) -> Self {
        let mut masked: Vec<(Range<usize>, String)> = Vec::new();
        // The three quotes of a text that has begun on a line before.
        let mut open: Option<&str> = None;
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let end = start + line.trim_end().len();
            let mut at = start;
            while at < end {
                let (begin, quotes) = match (open, opening_quotes(&text[at..end])) {
                    (Some(quotes), _) => (at, quotes),
                    (None, Some((offset, quotes))) => (at + offset + quotes.len(), quotes),
                    (None, None) => break,
                };
                let closing = text[begin..end].find(quotes).map(|at| begin + at);
                masked.push((begin..closing.unwrap_or(end), MASK.to_owned()));
                open = (closing.is_none() && quotes.len() == 3).then_some(quotes);
                at = closing.map_or(end, |closing| closing + quotes.len());
            }
            if let Some(value) = secret_on(line)
                && start + value < end
            {
                masked.push((start + value..end, MASK.to_owned()));
            }
            start += line.len();
        }
        masked.sort_unstable_by_key(|(range, _)| (range.start, Reverse(range.end)));
        Self { text: text.to_owned(), has_lines: true, masked }
    }

    /// An environment variable with what it holds, and the part of it that is the value.
    pub(super) fn variable(name: &str, value: &str, is_secret: bool) -> (Self, Range<usize>) {
        let shown = if is_secret { MASK.to_owned() } else { secret::without_passwords(value).into_owned() };
        let text = format!("{name}={}", printable(&shown));
        let range = name.len() + 1..text.len();
        (Self { text, has_lines: false, masked: Vec::new() }, range)
    }

    /// The line and the column, in characters, of a byte; both from 1.
    pub(super) fn line_and_column(&self, at: usize) -> (usize, usize) {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    /// The first line of a part, with a mark under the part.
    fn excerpt(&self, range: &Range<usize>) -> String {
        let start = range.start.min(self.text.len());
        let line_start = self.text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end =
            self.text[line_start..].find(['\n', '\r']).map_or(self.text.len(), |end| line_start + end);
        let end = range.end.clamp(start, line_end.max(start));
        let pieces = self.pieces(line_start..line_end);
        let line: String = pieces.iter().map(|(_, shown)| *shown).collect();
        let from = self.column(&pieces, start, false);
        let to = self.column(&pieces, end, true).max(from + 1);
        shown(self.has_lines.then(|| self.line_and_column(start).0), &line, from, to)
    }

    /// The parts of a line, each as it is shown.
    fn pieces(&self, line: Range<usize>) -> Vec<(Range<usize>, &str)> {
        let mut pieces = Vec::new();
        let mut at = line.start;
        for (masked, shown) in &self.masked {
            // It may begin on a line before this one, or end on one behind it.
            let (start, end) = (masked.start.max(at), masked.end.min(line.end));
            if start < end {
                pieces.push((at..start, &self.text[at..start]));
                pieces.push((start..end, shown.as_str()));
                at = end;
            }
        }
        pieces.push((at..line.end, &self.text[at..line.end]));
        pieces
    }

    /// The characters that are shown before a byte; of a masked part there is only its beginning and its end.
    fn column(&self, pieces: &[(Range<usize>, &str)], byte: usize, is_end: bool) -> usize {
        let mut before = 0;
        for (part, shown) in pieces {
            let characters = shown.chars().count();
            let is_within = if is_end { byte <= part.end } else { byte < part.end };
            if is_within {
                let is_masked = *shown != &self.text[part.clone()];
                return match (is_masked, is_end) {
                    (true, true) => before + characters,
                    (true, false) => before,
                    (false, _) => before + self.text[part.start..byte.max(part.start)].chars().count(),
                };
            }
            before += characters;
        }
        before
    }
}

/// The quotes with which the next text on a line begins, and where.
fn opening_quotes(line: &str) -> Option<(usize, &'static str)> {
    let at = line.find(['"', '\''])?;
    let all = ["\"\"\"", "'''", "\"", "'"];
    all.into_iter().find(|quotes| line[at..].starts_with(quotes)).map(|quotes| (at, quotes))
}

/// Where on a line the value of the first key begins that may be a secret's.
fn secret_on(line: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(equals) = line[from..].find('=').map(|at| from + at) {
        let key = line[..equals].trim_end();
        let begin = key.rfind(|character: char| !(character.is_alphanumeric() || "_-.".contains(character)));
        let key = begin.map_or(key, |begin| {
            key[begin..].trim_start_matches(|character: char| !character.is_alphanumeric())
        });
        let value = equals + 1;
        if secret::is_name(key) {
            return Some(value + (line[value..].len() - line[value..].trim_start().len()));
        }
        from = value;
    }
    None
}

/// A text without control characters, with which whoever sets a variable could write lines of a log, or to a terminal.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return text.into();
    }
    let mut printable = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            printable.extend(character.escape_default());
        } else {
            printable.push(character);
        }
    }
    printable.into()
}

/// A line with a mark under the characters `from..to`, cut where it is long.
fn shown(number: Option<usize>, line: &str, from: usize, to: usize) -> String {
    let skipped = if to > WIDTH { from.saturating_sub(WIDTH / 3) } else { 0 };
    let (mut text, mut under) = (String::new(), String::new());
    if skipped > 0 {
        text.push('…');
        under.push(' ');
    }
    for (at, character) in line.chars().enumerate().skip(skipped).take(WIDTH) {
        text.push(character);
        under.push(if (from..to).contains(&at) {
            '^'
        } else if character == '\t' {
            '\t'
        } else {
            ' '
        });
    }
    if line.chars().count() > skipped + WIDTH {
        text.push('…');
    }
    if !under.contains('^') {
        under.push('^');
    }
    let number = number.map(|number| number.to_string()).unwrap_or_default();
    let width = number.len().max(3);
    format!("\n  {number:>width$} | {text}\n  {:width$} | {}", "", under.trim_end())
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

/// A part of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) source: Arc<Source>,
    pub(super) range: Range<usize>,
}

impl Part {
    /// What of it is `text`, where it is in there and no part of a longer word.
    pub(super) fn within(&self, text: &str) -> Self {
        let whole = self.source.text.get(self.range.clone()).unwrap_or_default();
        let is_part_of_word = |character: char| character.is_alphanumeric() || "_-.".contains(character);
        let found = whole.match_indices(text).map(|(at, _)| at).filter(|at| {
            let before = whole[..*at].chars().next_back().filter(|_| text.starts_with(is_part_of_word));
            let behind = whole[at + text.len()..].chars().next().filter(|_| text.ends_with(is_part_of_word));
            !before.is_some_and(is_part_of_word) && !behind.is_some_and(is_part_of_word)
        });
        // In a URL, the host may have the name that an option has behind it.
        match found.last().filter(|_| !text.is_empty()) {
            Some(at) => {
                let start = self.range.start + at;
                Self { source: Arc::clone(&self.source), range: start..start + text.len() }
            }
            None => self.clone(),
        }
    }

    pub(super) fn line_and_column(&self) -> (usize, usize) {
        self.source.line_and_column(self.range.start)
    }
}

/// On lines of its own: the line of the source, and a mark under the part.
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source.excerpt(&self.range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(text: &str, part: &str) -> String {
        let source = Source::file(text, &Positions::of(text).unwrap());
        let start = text.find(part).unwrap();
        Part { source: Arc::new(source), range: start..start + part.len() }.to_string()
    }

    #[test]
    fn a_part_is_marked_in_its_line() {
        assert_eq!(
            excerpt("[broker]\nname = \"a b\"\n", "\"a b\""),
            "\n    2 | name = \"a b\"\n      |        ^^^^^"
        );
        assert_eq!(excerpt("[broker]", "[broker]"), "\n    1 | [broker]\n      | ^^^^^^^^");
        assert_eq!(excerpt("a = [\n1]\n", "[\n1]"), "\n    1 | a = [\n      |     ^");
        assert_eq!(excerpt("\t\"ä\" = \"ö\"", "\"ö\""), "\n    1 | \t\"ä\" = \"ö\"\n      | \t      ^^^");
    }

    #[test]
    fn secrets_on_the_line_are_masked_and_the_mark_moves_with_them() {
        assert_eq!(
            excerpt("[beans]\nm = { password = \"geheim\", port = \"x\" }", "\"x\""),
            "\n    2 | m = { password = ***, port = \"x\" }\n      |                              ^^^"
        );
        assert_eq!(
            excerpt("[beans]\nm = { password = \"geheim\", port = \"x\" }", "\"geheim\""),
            "\n    2 | m = { password = ***, port = \"x\" }\n      |                  ^^^"
        );
        assert_eq!(
            excerpt("[c]\nurl = \"tcp://u:pw@h?x=1\"", "x=1"),
            "\n    2 | url = \"tcp://u:***@h?x=1\"\n      |                      ^^^"
        );
        let text = excerpt("[c.d]\npassword = \"\"\"\nge\nheim\"\"\"\n", "heim");
        assert!(!text.contains("heim"), "{text}");
    }

    #[test]
    fn a_long_line_is_cut_around_the_mark() {
        let text = format!("a = [\"{}\", 5, \"{}\"]", "x".repeat(500), "y".repeat(500));
        let shown = excerpt(&text, "5");
        let lines: Vec<_> = shown.lines().skip(1).collect();
        assert!(lines[0].starts_with("    1 | …xx") && lines[0].ends_with("y…"), "{shown}");
        let mark = lines[1].chars().position(|character| character == '^').unwrap();
        assert_eq!(lines[0].chars().nth(mark), Some('5'), "{shown}");
    }

    #[test]
    fn a_variable_cannot_write_lines() {
        let (source, range) = Source::variable("A", "x\ny", false);
        let part = Part { source: Arc::new(source), range };
        assert_eq!(part.to_string(), "\n      | A=x\\ny\n      |   ^^^^");
        let (source, range) = Source::variable("A", "geheim", true);
        assert_eq!(Part { source: Arc::new(source), range }.to_string(), "\n      | A=***\n      |   ^^^");
    }
}

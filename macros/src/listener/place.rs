//! Where the attribute stands.
//!
//! An attribute macro is not told what is around its item, and what it emits for a function in an `impl` block is refused
//! with errors about things that the user never wrote. So the source before it is looked at. Where there is none, as in
//! some editors, nothing is known and those errors remain.

use std::fs;

use proc_macro2::Span;

/// Whether the attribute stands directly in an `impl` block or a trait.
pub(super) fn is_in_implementation() -> bool {
    // Outside of a macro's run, as in a unit test, there are no real spans.
    if !proc_macro::is_available() {
        return false;
    }
    let span = Span::call_site().unwrap();
    let Some(text) = span.local_file().and_then(|path| fs::read_to_string(path).ok()) else { return false };
    let mut lines = text.split_inclusive('\n');
    let mut before: String = lines.by_ref().take(span.line().saturating_sub(1)).collect();
    before.extend(lines.next().unwrap_or_default().chars().take(span.column().saturating_sub(1)));
    ends_in_implementation(&before)
}

/// Whether the innermost block that is open at the end of a source text is that of an `impl` or a trait.
fn ends_in_implementation(source: &str) -> bool {
    let mut blocks = Vec::new();
    // What has stood in front of the next brace since the last item or statement.
    let mut head = String::new();
    let mut rest = source;
    while let Some(character) = rest.chars().next() {
        let skipped = length_without_code(rest);
        if skipped > 0 {
            head.push(' ');
            rest = &rest[skipped..];
            continue;
        }
        match character {
            '{' => {
                blocks.push(begins_implementation(&head));
                head.clear();
            }
            '}' => {
                blocks.pop();
                head.clear();
            }
            // That of an array's type belongs to the head.
            ';' if head.matches('[').count() == head.matches(']').count() => head.clear(),
            other => head.push(other),
        }
        rest = &rest[character.len_utf8()..];
    }
    blocks.last().copied().unwrap_or_default()
}

/// The length of the comment or literal that a text begins with; 0 where it begins with code.
fn length_without_code(text: &str) -> usize {
    let end = |found: Option<usize>, behind: usize| found.map_or(text.len(), |at| at + behind);
    if text.starts_with("//") {
        return end(text.find('\n'), 0);
    }
    if text.starts_with("/*") {
        return block_comment(text);
    }
    if text.starts_with('"') {
        return quoted(text, '"');
    }
    if let Some(raw) = text.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let close = format!("\"{}", "#".repeat(hashes));
            let begin = 1 + hashes + 1;
            return end(text[begin..].find(&close), begin + close.len());
        }
    }
    let mut characters = text.chars();
    match (characters.next(), characters.next(), characters.next()) {
        // A lifetime has no second quote.
        (Some('\''), Some('\\'), _) => quoted(text, '\''),
        (Some('\''), Some(inner), Some('\'')) => 2 + inner.len_utf8(),
        _ => 0,
    }
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of a literal between two of these quotes.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Whether what stands in front of a brace is the beginning of an `impl` block or a trait.
fn begins_implementation(head: &str) -> bool {
    let mut head = head.trim_start();
    while let Some(attribute) = head.strip_prefix('#') {
        let mut depth = 0_i32;
        let end = attribute.find(|character| {
            depth += i32::from(character == '[') - i32::from(character == ']');
            character == ']' && depth == 0
        });
        let Some(end) = end else { return false };
        head = attribute[end + 1..].trim_start();
    }
    head.split(|character: char| !(character.is_alphanumeric() || character == '_'))
        .filter(|word| !word.is_empty())
        .find(|word| {
            !["pub", "crate", "super", "self", "in", "unsafe", "default", "const", "auto"].contains(word)
        })
        .is_some_and(|word| word == "impl" || word == "trait")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_implementation_is_told_from_other_blocks() {
        for source in [
            "impl Service {",
            "mod a { struct S; impl<T: Into<[u8; 2]>> Trait for S where T: Copy {\n    fn one() { if x { } }\n",
            "#[allow(x)] #[cfg(all(unix, feature = \"a\"))] unsafe impl A {",
            "/* impl { */ // {\n pub(crate) trait T { fn a(); ",
            "const A: &str = \"}\"; impl A { const B: char = '}'; const C: char = '\\''; fn f<'a>() {} ",
            "impl A { const A: &str = r#\"}\"}\"#;",
        ] {
            assert!(ends_in_implementation(source), "{source}");
        }
        for source in [
            "",
            "impl A { }",
            "mod a {",
            "impl A { fn f() {",
            "fn f() -> impl Iterator<Item = u8> {",
            "const A: &str = \"impl A {\";",
            "// impl A {\n",
            "/* /* */ impl A { */",
            "r\"impl A {\"",
            "struct Implementation { implemented: bool }",
            "}}}",
            "\"never closed {",
        ] {
            assert!(!ends_in_implementation(source), "{source}");
        }
    }
}

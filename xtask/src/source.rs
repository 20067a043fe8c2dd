//! Rust source reduced to what the compiler acts on, so that a search finds no word in a comment or a text.

/// The same text with comments, strings and character literals blanked out; lines and columns stay.
pub(crate) fn code_only(text: &str) -> String {
    let mut scanner = Scanner { rest: text, code: String::with_capacity(text.len()) };
    while let Some(next) = scanner.rest.chars().next() {
        scanner.step(next);
    }
    scanner.code
}

/// Whether `word` stands in `line` as a word of its own, not as a part of a longer name.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[derive(Debug)]
struct Scanner<'a> {
    rest: &'a str,
    code: String,
}

impl Scanner<'_> {
    fn step(&mut self, next: char) {
        let inside_name = self.code.chars().next_back().is_some_and(is_name);
        if self.rest.starts_with("//") {
            self.blank(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.blank(block_comment(self.rest));
        } else if next == '"' {
            self.blank(1 + string_end(&self.rest[1..]));
        } else if let Some(length) = (!inside_name).then(|| raw_string(self.rest)).flatten() {
            self.blank(length);
        } else if let Some(length) = (next == '\'').then(|| character_literal(self.rest)).flatten() {
            self.blank(length);
        } else {
            self.code.push(next);
            self.rest = &self.rest[next.len_utf8()..];
        }
    }

    fn blank(&mut self, length: usize) {
        let (gone, rest) = self.rest.split_at(length);
        self.code.extend(gone.chars().map(|character| if character == '\n' { '\n' } else { ' ' }));
        self.rest = rest;
    }
}

/// The length of a block comment, which may hold others; one without an end takes the rest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += next.len_utf8();
        }
    }
    text.len()
}

/// The length up to and with the quote that ends a string whose first quote has been read.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a raw string (`r"…"`, `br#"…"#`), if one begins here.
fn raw_string(text: &str) -> Option<usize> {
    let body = text.strip_prefix('b').or_else(|| text.strip_prefix('c')).unwrap_or(text).strip_prefix('r')?;
    let hashes = body.len() - body.trim_start_matches('#').len();
    let inner = body[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let opening = text.len() - inner.len();
    Some(inner.find(&close).map_or(text.len(), |end| opening + end + close.len()))
}

/// The length of a character literal, if it is one and no lifetime.
fn character_literal(text: &str) -> Option<usize> {
    let mut characters = text.char_indices().skip(1);
    let (_, first) = characters.next()?;
    if first == '\\' {
        // The character behind the backslash may itself be a quote.
        characters.next()?;
        return characters.find(|(_, character)| *character == '\'').map(|(at, _)| at + 1);
    }
    characters.next().filter(|(_, character)| *character == '\'').map(|(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        code_only(text).split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn comments_are_no_code() {
        assert_eq!(words("a // unsafe\nb /* x /* nested */ unsafe */ c /// doc\nd"), ["a", "b", "c", "d"]);
    }

    #[test]
    fn strings_are_no_code() {
        assert_eq!(words(r#"f("unsafe \" still"); g"#), ["f(", ");", "g"]);
        assert_eq!(words("r#\"raw \" unsafe\"# a br\"bytes\" b"), ["a", "b"]);
    }

    #[test]
    fn a_quote_as_a_character_opens_no_string() {
        assert_eq!(words("'\"' a '\\'' b '\\\\' c '\\u{41}' d"), ["a", "b", "c", "d"]);
    }

    #[test]
    fn a_lifetime_is_no_character() {
        assert_eq!(code_only("fn f<'a>(x: &'a str) {}"), "fn f<'a>(x: &'a str) {}");
    }

    #[test]
    fn a_name_that_ends_in_r_begins_no_raw_string() {
        assert_eq!(code_only("matcher\"x\" r"), "matcher    r");
    }

    #[test]
    fn what_never_ends_takes_the_rest() {
        for text in ["a /* open", "a \"open", "a r#\"open\"", "a '"] {
            assert!(code_only(text).starts_with('a'), "{text}");
        }
    }

    #[test]
    fn lines_stay_where_they_were() {
        assert_eq!(code_only("\"one\ntwo\" a\n/*\n*/ b").lines().count(), 4);
    }

    #[test]
    fn a_word_is_not_found_inside_a_longer_name() {
        assert!(has_word("x = unsafe { y }", "unsafe"));
        assert!(!has_word("deny(unsafe_code)", "unsafe"));
        assert!(!has_word("very_unsafe", "unsafe"));
    }
}

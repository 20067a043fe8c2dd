//! Keys with their tables, written as in TOML: `templates."order.template".priority`.

/// Reads a whole path.
pub(super) fn parse(text: &str) -> Option<Vec<String>> {
    begin(text).filter(|(_, behind)| behind.is_empty()).map(|(path, _)| path)
}

/// Reads the path that a text begins with, and returns what stands behind it, without the space between.
pub(super) fn begin(text: &str) -> Option<(Vec<String>, &str)> {
    let mut path = Vec::new();
    let mut rest = text.trim_start();
    loop {
        let (segment, behind) = match rest.chars().next()? {
            quote @ ('"' | '\'') => rest[1..].split_once(quote)?,
            _ => {
                let end = rest
                    .find(|character: char| {
                        !(character.is_ascii_alphanumeric() || matches!(character, '_' | '-'))
                    })
                    .unwrap_or(rest.len());
                if end == 0 {
                    return None;
                }
                rest.split_at(end)
            }
        };
        path.push(segment.to_owned());
        rest = behind.trim_start();
        match rest.strip_prefix('.') {
            Some(next) => rest = next.trim_start(),
            None => return Some((path, rest)),
        }
    }
}

/// The path as TOML wants it, unusual names quoted.
pub(super) fn written<S: AsRef<str>>(path: &[S]) -> String {
    let plain = |name: &str| {
        !name.is_empty()
            && name.chars().all(|character| character.is_ascii_alphanumeric() || "_-".contains(character))
    };
    path.iter()
        .map(|name| match name.as_ref() {
            name if plain(name) => name.to_owned(),
            name if name.contains(['"', '\\']) && !name.contains('\'') => format!("'{name}'"),
            name => format!("\"{name}\""),
        })
        .collect::<Vec<_>>()
        .join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_dots_are_quoted() {
        for (text, names) in [
            ("broker.name", vec!["broker", "name"]),
            ("templates.\"order.template\".priority", vec!["templates", "order.template", "priority"]),
            (" a . 'b c' ", vec!["a", "b c"]),
            ("a.\"\"", vec!["a", ""]),
        ] {
            assert_eq!(
                parse(text).as_deref(),
                Some(&names.iter().map(ToString::to_string).collect::<Vec<_>>()[..]),
                "{text}"
            );
        }
        for text in ["", ".", "a.", ".a", "a..b", "a b", "a.\"b", "a.\"b\"c", "ä"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(written(&["templates", "order.template", "a-b_1"]), "templates.\"order.template\".a-b_1");
    }
}

//! The names of types, as people write them.

/// The name of a bean that has none of its own: `SmtpMailer` is `smtp_mailer`.
pub(crate) fn name_of_type(type_name: &str) -> String {
    let plain = type_name.split('<').next().unwrap_or(type_name);
    let last = plain.rsplit("::").next().unwrap_or(plain);
    if last.is_empty() || !last.chars().all(|letter| letter.is_alphanumeric() || letter == '_') {
        // A tuple, a list, a reference: it has no name of its own.
        return type_name.to_owned();
    }
    snake_case(last)
}

fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut written = String::with_capacity(name.len() + 4);
    for (index, letter) in letters.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| letters.get(before));
        let begins_word = letter.is_uppercase()
            && before.is_some_and(|before| {
                let after = letters.get(index + 1);
                let ends_capitals = before.is_uppercase() && after.is_some_and(|after| after.is_lowercase());
                before.is_lowercase() || before.is_numeric() || ends_capitals
            });
        if begins_word {
            written.push('_');
        }
        written.extend(letter.to_lowercase());
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bean_is_named_after_the_last_part_of_its_type() {
        for (type_name, expected) in [
            ("shop::mail::SmtpMailer", "smtp_mailer"),
            ("Outbox", "outbox"),
            ("shop::HTTPServer", "http_server"),
            ("shop::Http2Server", "http2_server"),
            ("shop::A", "a"),
            ("shop::my_type", "my_type"),
            ("std::sync::mutex::Mutex<core::option::Option<shop::Order>>", "mutex"),
            ("u8", "u8"),
            ("(shop::A, shop::B)", "(shop::A, shop::B)"),
            ("[u8; 4]", "[u8; 4]"),
            ("&str", "&str"),
        ] {
            assert_eq!(name_of_type(type_name), expected, "{type_name}");
        }
    }
}

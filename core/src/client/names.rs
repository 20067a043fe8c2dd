//! Names that a client makes up: its client id, and those of its durable subscriptions.

use crate::destination::Destination;

/// What is wrong with a client id, or the name of a durable subscription, if anything is: it is empty, longer than 1,024 bytes or
/// holds a control character. So a broker behind a wire has room for it, and a log a line.
#[must_use]
pub fn name_fault(name: &str) -> Option<&'static str> {
    if name.trim().is_empty() {
        Some("it is empty")
    } else if name.len() > Destination::MAXIMUM_NAME_BYTES {
        Some("it is longer than 1,024 bytes")
    } else if name.chars().any(char::is_control) {
        Some("it holds a control character")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_one_line_that_a_wire_has_room_for_works_whatever_is_in_it() {
        let long = "n".repeat(1_024);
        for name in
            ["daily", "a b", "a.b", "*", ">", "a,b", "ünïcode 名前", "../x", "queue://x", "`'\"", &long]
        {
            assert_eq!(name_fault(name), None, "{name}");
        }
        let longer = "n".repeat(1_025);
        for (name, expected) in [
            ("", "it is empty"),
            (" ", "it is empty"),
            ("a\nb", "it holds a control character"),
            ("a\0b", "it holds a control character"),
            (&longer, "it is longer than 1,024 bytes"),
        ] {
            assert_eq!(name_fault(name), Some(expected), "{name}");
        }
    }
}

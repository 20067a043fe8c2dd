//! Texts of strangers, as errors show them.

/// The text with its control characters escaped, or its beginning: what a peer or a file says may be of any length and
/// hold anything, and errors end up in logs.
pub(crate) fn shown(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut shown = String::new();
    for (index, character) in text.chars().enumerate() {
        if index == SHOWN {
            shown.push('…');
            break;
        }
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_can_neither_flood_a_log_nor_begin_a_new_line_in_it() {
        assert_eq!(shown("plain `Ünïcode` 名前"), "plain `Ünïcode` 名前");
        assert_eq!(shown("a\r\nb\u{1b}[2J"), "a\\r\\nb\\u{1b}[2J");
        assert_eq!(shown(&"名".repeat(60)), "名".repeat(60));
        assert_eq!(shown(&"名".repeat(70_000)), format!("{}…", "名".repeat(60)));
    }
}

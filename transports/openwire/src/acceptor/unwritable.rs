//! Of which messages it was said that they cannot be written for a consumer.

use std::collections::HashSet;

use corriere_core::MessageId;

/// How many are remembered for one consumer, to bound what a queue of dead letters that is full of them takes.
const MOST: usize = 1_024;

/// The messages that the log has warned of, as one on a queue of dead letters comes again and again.
#[derive(Debug, Default)]
pub(super) struct Unwritable(HashSet<MessageId>);

impl Unwritable {
    /// Takes note of a message; whether the log is to warn of it. One that has no id it warns of each time.
    pub(super) fn is_new(&mut self, id: Option<&MessageId>) -> bool {
        let Some(id) = id else { return true };
        if self.0.contains(id) {
            return false;
        }
        if self.0.len() >= MOST {
            // Each is said once more then, which are few lines for so many messages.
            self.0.clear();
        }
        self.0.insert(id.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(sequence: usize) -> MessageId {
        MessageId { producer: "ID:p".into(), sequence: sequence.try_into().unwrap() }
    }

    #[test]
    fn each_message_is_said_once_however_often_it_comes_and_little_is_remembered() {
        let mut unwritable = Unwritable::default();
        for round in 0..3 {
            for sequence in 0..MOST {
                assert_eq!(unwritable.is_new(Some(&id(sequence))), round == 0, "{sequence}");
            }
        }
        assert!(unwritable.is_new(None) && unwritable.is_new(None));
        assert!(unwritable.is_new(Some(&id(MOST))) && !unwritable.is_new(Some(&id(MOST))));
        assert_eq!(unwritable.0.len(), 1);
    }
}

//! What a run comes to.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use serde::{Serialize, Serializer};

use crate::data::Data;

/// What the data directory has come to. No number is derived from another; whether they agree is the point of counting.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Summary {
    /// Messages that were ever put on `orders`.
    pub orders: u64,
    /// E-mails that were ever acknowledged on `emails`.
    pub emails: u64,
    /// Messages found in the dead letter queues.
    pub dead_letters: DeadLetters,
    /// Deliveries of this run that were not the first of their message.
    pub redeliveries: u64,
    /// Of this run.
    pub seconds: f64,
    /// Of those that this run published.
    pub orders_per_s: f64,
}

/// Dead letters by the class of their reason; in JSON only their number.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct DeadLetters(BTreeMap<String, u64>);

impl Summary {
    /// Whether every order became an e-mail or a dead letter.
    pub(crate) fn is_balanced(&self) -> bool {
        self.orders == self.emails + self.dead_letters.count()
    }

    /// Prints it for people, with what becomes of the data, or as JSON.
    pub(crate) fn print(&self, json: bool, data: &Data) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if json {
            serde_json::to_writer(&mut out, self)?;
            writeln!(out)
        } else {
            writeln!(out, "{self}\n{:<28}{data}", "data")
        }
    }
}

impl DeadLetters {
    /// Counts one by its cause, whose class stands before the first colon.
    pub(crate) fn add(&mut self, cause: &str) {
        let class = cause.split_once(": ").map_or(cause, |(class, _)| class);
        *self.0.entry(class.to_owned()).or_default() += 1;
    }

    /// All of them.
    pub(crate) fn count(&self) -> u64 {
        self.0.values().sum()
    }
}

impl Serialize for DeadLetters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.count())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<28}{:>8}", "orders", self.orders)?;
        writeln!(f, "{:<28}{:>8}", "e-mails", self.emails)?;
        writeln!(f, "{:<28}{:>8}", "dead letters", self.dead_letters.count())?;
        for (class, count) in &self.dead_letters.0 {
            writeln!(f, "  {class:<26}{count:>8}")?;
        }
        writeln!(f, "{:<28}{:>8}", "redeliveries", self.redeliveries)?;
        writeln!(f, "{:<28}{:>8.2}", "seconds", self.seconds)?;
        write!(f, "{:<28}{:>8.0}", "orders per second", self.orders_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(emails: u64) -> Summary {
        let mut dead_letters = DeadLetters::default();
        for cause in ["e-mail: `` is no e-mail address", "e-mail: `x`", "total: 1.00: 2.00", "gone"] {
            dead_letters.add(cause);
        }
        Summary { orders: 10, emails, dead_letters, redeliveries: 1, seconds: 0.5, orders_per_s: 20.0 }
    }

    #[test]
    fn only_orders_that_all_ended_are_balanced() {
        assert!(summary(6).is_balanced());
        assert!(!summary(5).is_balanced());
        assert!(!summary(7).is_balanced());
    }

    #[test]
    fn the_reasons_are_shown_to_people_and_only_counted_in_json() {
        let text = summary(6).to_string();
        let lines: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
        assert_eq!(
            lines[2..6],
            [vec!["dead", "letters", "4"], vec!["e-mail", "2"], vec!["gone", "1"], vec!["total", "1"]]
        );
        let json = serde_json::to_string(&summary(6)).unwrap();
        assert_eq!(
            json,
            r#"{"orders":10,"emails":6,"dead_letters":4,"redeliveries":1,"seconds":0.5,"orders_per_s":20.0}"#
        );
    }
}

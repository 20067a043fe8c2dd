//! Days of the calendar.

use std::fmt;
use std::str::FromStr;

/// A day, written `2026-11-29`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Date {
    year: u16,
    month: u8,
    day: u8,
}

/// The text is no day written YYYY-MM-DD.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NotADate;

impl FromStr for Date {
    type Err = NotADate;

    fn from_str(text: &str) -> Result<Self, NotADate> {
        let [year, month, day] = text.split('-').collect::<Vec<_>>()[..] else { return Err(NotADate) };
        let date = Self { year: digits(year, 4)?, month: digits(month, 2)?, day: digits(day, 2)? };
        if date.day == 0 || date.day > days_of(date.year, date.month) {
            return Err(NotADate);
        }
        Ok(date)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

fn digits<T: FromStr>(text: &str, width: usize) -> Result<T, NotADate> {
    if text.len() != width || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NotADate);
    }
    text.parse().map_err(|_| NotADate)
}

/// 0 for a month that does not exist.
fn days_of(year: u16, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        1..=12 => 31,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_that_the_calendar_lacks_are_refused() {
        for bad in ["2025-02-29", "1900-02-29", "2025-04-31", "2025-13-01", "2025-00-10", "2025-01-00"] {
            assert_eq!(bad.parse::<Date>(), Err(NotADate), "{bad}");
        }
        for bad in ["", "2025-1-01", "25-01-01", "2025-01-01T00:00", "+025-01-01", "2025/01/01", "-1-01-01"] {
            assert_eq!(bad.parse::<Date>(), Err(NotADate), "{bad}");
        }
        for good in ["2024-02-29", "2000-02-29", "1996-07-04", "2025-12-31"] {
            assert_eq!(good.parse::<Date>().unwrap().to_string(), good);
        }
    }

    #[test]
    fn days_are_ordered_as_in_the_calendar() {
        let date = |text: &str| text.parse::<Date>().unwrap();
        assert!(date("2024-12-31") < date("2025-01-01"));
        assert!(date("2025-09-30") < date("2025-10-01"));
    }
}

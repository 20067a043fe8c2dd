//! Rows of a CSV file, each with its place. The `csv` crate maps rows to records by their header, but splitting the text
//! is done here: it knows no columns, and takes a quote that is never closed for the rest of the file.

use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::str::Chars;
use std::{fmt, fs, io};

use csv::StringRecord;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Where a row begins, written `orders.csv:17`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub file: String,
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Why a file cannot be read as records.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum InputError {
    /// The file itself.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// A row of it; the column counts characters, from 1.
    #[error("{}:{line}:{column}: {fault}", path.display())]
    Row { path: PathBuf, line: usize, column: usize, fault: Fault },
}

/// What is wrong with a row.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum Fault {
    #[error("the text is not UTF-8 here")]
    NotUtf8,
    #[error("the header lacks a column: {problem}")]
    Header { problem: String },
    #[error("the row ends after {found} of {expected} fields")]
    TooFewFields { found: usize, expected: usize },
    #[error("expected the end of the row after {expected} fields")]
    TooManyFields { expected: usize },
    #[error("this quote is never closed")]
    UnclosedQuote,
    #[error("expected a comma or the end of the row after the closing quote")]
    AfterQuote,
}

/// Reads all rows of the file, by the names in its first.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<(Place, T)>, InputError> {
    let bytes = fs::read(path).map_err(|source| InputError::Unreadable { path: path.to_owned(), source })?;
    let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    parse(&bytes, &file).map_err(|(Position { line, column }, fault)| InputError::Row {
        path: path.to_owned(),
        line,
        column,
        fault,
    })
}

fn parse<T: DeserializeOwned>(bytes: &[u8], file: &str) -> Result<Vec<(Place, T)>, (Position, Fault)> {
    let text = str::from_utf8(bytes).map_err(|error| {
        let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        (Position::behind(&valid), Fault::NotUtf8)
    })?;
    let mut scanner = Scanner::new(text.trim_start_matches('\u{feff}'));
    let (start, header) = scanner.row(None)?.unwrap_or_default();
    // Every field of a record is text, so the header itself makes a record, unless a column is missing.
    record::<T>(&header, &header).map_err(|problem| (start, Fault::Header { problem }))?;

    let mut rows = Vec::new();
    while let Some((start, row)) = scanner.row(Some(header.len()))? {
        let record = record(&row, &header).map_err(|problem| (start, Fault::Header { problem }))?;
        rows.push((Place { file: file.to_owned(), line: start.line }, record));
    }
    Ok(rows)
}

fn record<T: DeserializeOwned>(row: &StringRecord, header: &StringRecord) -> Result<T, String> {
    row.deserialize(Some(header)).map_err(|error| match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => err.kind().to_string(),
        _ => error.to_string(),
    })
}

/// A place in the text, from 1 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Position {
    line: usize,
    column: usize,
}

impl Default for Position {
    fn default() -> Self {
        Self { line: 1, column: 1 }
    }
}

impl Position {
    fn behind(text: &str) -> Self {
        let mut position = Self::default();
        text.chars().for_each(|c| position.pass(c));
        position
    }

    fn pass(&mut self, c: char) {
        if c == '\n' {
            *self = Self { line: self.line + 1, column: 1 };
        } else {
            self.column += 1;
        }
    }
}

/// Splits text as RFC 4180 has it.
struct Scanner<'text> {
    rest: Peekable<Chars<'text>>,
    position: Position,
}

impl<'text> Scanner<'text> {
    fn new(text: &'text str) -> Self {
        Self { rest: text.chars().peekable(), position: Position::default() }
    }

    /// The next row and where it begins; `None` at the end of the text. Empty lines are no rows.
    fn row(
        &mut self,
        expected: Option<usize>,
    ) -> Result<Option<(Position, StringRecord)>, (Position, Fault)> {
        while self.next_if(|c| matches!(c, '\r' | '\n')).is_some() {}
        if self.rest.peek().is_none() {
            return Ok(None);
        }
        let start = self.position;
        let mut row = StringRecord::new();
        loop {
            if let Some(expected) = expected.filter(|expected| row.len() == *expected) {
                return Err((self.position, Fault::TooManyFields { expected }));
            }
            row.push_field(&self.field()?);
            if self.next_if(|c| c == ',').is_none() {
                break;
            }
        }
        match expected {
            Some(expected) if row.len() < expected => {
                Err((self.position, Fault::TooFewFields { found: row.len(), expected }))
            }
            _ => Ok(Some((start, row))),
        }
    }

    /// A field; what follows it is a comma or the end of the row.
    fn field(&mut self) -> Result<String, (Position, Fault)> {
        let start = self.position;
        let mut field = String::new();
        if self.next_if(|c| c == '"').is_none() {
            while let Some(c) = self.next_if(|c| !is_end_of_field(c)) {
                field.push(c);
            }
            return Ok(field);
        }
        loop {
            match self.next_if(|_| true) {
                None => return Err((start, Fault::UnclosedQuote)),
                // A doubled quote is one of the text; a single one ends the field.
                Some('"') if self.next_if(|c| c == '"').is_none() => break,
                Some(c) => field.push(c),
            }
        }
        match self.rest.peek() {
            Some(c) if !is_end_of_field(*c) => Err((self.position, Fault::AfterQuote)),
            _ => Ok(field),
        }
    }

    fn next_if(&mut self, accepts: impl FnOnce(char) -> bool) -> Option<char> {
        let c = self.rest.next_if(|c| accepts(*c))?;
        self.position.pass(c);
        Some(c)
    }
}

fn is_end_of_field(c: char) -> bool {
    matches!(c, ',' | '\r' | '\n')
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Pair {
        a: String,
        b: String,
    }

    fn pairs(text: &str) -> Vec<(usize, String, String)> {
        let rows = parse::<Pair>(text.as_bytes(), "f").unwrap();
        rows.into_iter().map(|(place, pair)| (place.line, pair.a, pair.b)).collect()
    }

    fn fault(text: impl AsRef<[u8]>) -> String {
        let (position, fault) = parse::<Pair>(text.as_ref(), "f").unwrap_err();
        format!("{}:{}: {fault}", position.line, position.column)
    }

    #[test]
    fn quotes_commas_and_line_ends_within_fields_are_text() {
        let text = "\u{feff}b,a\r\n\"x, \"\"y\"\"\",1\r\n\r\n\"two\nlines\",\"\"\n12\" pipe,é";
        assert_eq!(
            pairs(text),
            [
                (2, "1".to_owned(), "x, \"y\"".to_owned()),
                (4, String::new(), "two\nlines".to_owned()),
                (6, "é".to_owned(), "12\" pipe".to_owned()),
            ]
        );
    }

    #[test]
    fn a_row_that_is_no_record_is_located() {
        assert_eq!(fault("a,b\n1,2\né\n"), "3:2: the row ends after 1 of 2 fields");
        assert_eq!(fault("a,b\n\"é,\n\",2,3\n"), "3:5: expected the end of the row after 2 fields");
        assert_eq!(fault("a,b\n1,\"2\n3,4\n"), "2:3: this quote is never closed");
        assert_eq!(
            fault("a,b\n\"1\" ,2\n"),
            "2:4: expected a comma or the end of the row after the closing quote"
        );
        assert_eq!(fault(b"a,b\n\xc3\xa9,\xff\n"), "2:3: the text is not UTF-8 here");
    }

    #[test]
    fn a_column_that_is_missing_is_found_even_without_rows() {
        assert_eq!(fault("a,c\n"), "1:1: the header lacks a column: missing field `b`");
        assert_eq!(fault(""), "1:1: the header lacks a column: missing field `a`");
    }
}

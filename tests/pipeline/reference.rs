//! What the sample, and every other folder of orders, should come to, read independently of the example.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use crate::program::workspace;

/// A row by the names of its columns.
pub(crate) type Row = HashMap<String, String>;

/// The folder of the sample.
pub(crate) fn sample() -> PathBuf {
    workspace().join("examples/order_pipeline/sample")
}

/// The folder of orders that the environment names.
pub(crate) fn other_orders() -> Option<PathBuf> {
    std::env::var_os("CORRIERE_ORDERS_DIR").map(PathBuf::from)
}

/// All rows of a file.
pub(crate) fn rows(folder: &Path, file: &str) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(folder.join(file)).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

/// The broken orders of the sample and their reasons, as its README lists them.
pub(crate) fn broken() -> Vec<(String, String)> {
    let readme = fs::read_to_string(sample().join("README.md")).unwrap();
    let table = readme.lines().skip_while(|line| !line.starts_with("| ---")).skip(1);
    table
        .map(|line| {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            (cells[1].to_owned(), cells[2].to_owned())
        })
        .collect()
}

/// How many broken orders of the sample there are by reason.
pub(crate) fn broken_by_reason() -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for (_, reason) in broken() {
        *counts.entry(reason).or_default() += 1;
    }
    counts
}

/// The rows of the sample's sound orders.
pub(crate) fn sound_orders() -> Vec<Row> {
    let broken = broken();
    let mut sound = rows(&sample(), "orders.csv");
    for (order, _) in broken {
        match order.strip_suffix(" (the second)") {
            Some(twice) => {
                let second = sound.iter().rposition(|row| row["order_id"] == twice).unwrap();
                sound.remove(second);
            }
            None => sound.retain(|row| row["order_id"] != order),
        }
    }
    sound
}

//! Orders as the two files tell them: text, not checked yet.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::rows::{self, InputError, Place};

/// All that the files say about one order, which is the message on `orders`. Whether that makes a valid order is for
/// `on_order` to find out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The order's number, as the files have it.
    pub order_id: String,
    /// Which repetition of the input this is, from 1.
    pub round: u32,
    /// Where it begins: `orders.csv:17`.
    pub place: String,
    /// Its row of the orders; absent where lines name an order that does not exist.
    pub record: Option<OrderRecord>,
    /// Its rows of the lines.
    pub lines: Vec<LineRecord>,
    /// Where an earlier order of the same number stands.
    pub repeats: Option<String>,
}

impl Entry {
    /// The same entry in another round.
    pub(crate) fn in_round(&self, round: u32) -> Self {
        Self { round, ..self.clone() }
    }
}

/// A row of the orders.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct OrderRecord {
    pub order_id: String,
    pub order_date: String,
    pub shipped_date: String,
    pub company: String,
    pub contact_name: String,
    pub email: String,
    pub ship_name: String,
    pub ship_address: String,
    pub ship_city: String,
    pub ship_region: String,
    pub ship_postal_code: String,
    pub ship_country: String,
    pub freight: String,
    pub total: String,
}

/// A row of the lines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LineRecord {
    pub order_id: String,
    pub product: String,
    pub unit_price: String,
    pub quantity: String,
    pub discount: String,
}

/// Reads orders and lines: an entry for each order, then one for each order that does not exist though lines name it.
pub(crate) fn read(orders: &Path, lines: &Path) -> Result<Vec<Entry>, InputError> {
    let mut lines_of = HashMap::<String, (Place, Vec<LineRecord>)>::new();
    for (place, line) in rows::read::<LineRecord>(lines)? {
        let (_, lines) = lines_of.entry(line.order_id.clone()).or_insert_with(|| (place, Vec::new()));
        lines.push(line);
    }

    let mut entries = Vec::new();
    let mut places = HashMap::<String, String>::new();
    for (place, record) in rows::read::<OrderRecord>(orders)? {
        let order_id = record.order_id.clone();
        let place = place.to_string();
        let repeats = places.get(&order_id).cloned();
        places.entry(order_id.clone()).or_insert_with(|| place.clone());
        // Lines belong to the first order of their number.
        let lines = lines_of.remove(&order_id).map(|(_, lines)| lines).unwrap_or_default();
        entries.push(Entry { order_id, round: 1, place, record: Some(record), lines, repeats });
    }

    let mut orphans: Vec<_> = lines_of.into_iter().collect();
    orphans.sort_by_key(|(_, (place, _))| place.line);
    entries.extend(orphans.into_iter().map(|(order_id, (place, lines))| Entry {
        order_id,
        round: 1,
        place: place.to_string(),
        record: None,
        lines,
        repeats: None,
    }));
    Ok(entries)
}

//! Valid orders, and why an entry is none.

use lettre::Address;
use lettre::message::Mailbox;
use rust_decimal::Decimal;
use thiserror::Error;

use crate::date::Date;
use crate::input::{Entry, LineRecord, OrderRecord};

/// The most characters of a field: what an e-mail address may have, and few enough for a line of a mail's header.
const LONGEST_FIELD: usize = 320;
/// The most characters of an order's number.
const LONGEST_ID: usize = 40;
/// The most pieces in a line.
const MOST_PIECES: i64 = 1_000_000;

/// An order that holds together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Order {
    pub id: String,
    pub ordered: Date,
    pub shipped: Option<Date>,
    pub company: String,
    pub contact: String,
    pub email: Address,
    /// The lines of the postal address that are not empty.
    pub ship_to: Vec<String>,
    pub freight: Decimal,
    pub lines: Vec<Line>,
    pub total: Decimal,
}

/// A line of an order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub product: String,
    pub unit_price: Decimal,
    pub quantity: u32,
    pub discount: Decimal,
    /// Unit price × quantity × (1 − discount), exactly.
    pub amount: Decimal,
}

/// An entry that is no valid order.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{reason} (order `{order_id}`, {place})")]
pub(crate) struct InvalidOrder {
    pub order_id: String,
    pub place: String,
    pub reason: Reason,
}

/// What makes an entry no valid order. Its text begins with a class of few words and a colon, which the summary counts by.
#[derive(Clone, Debug, Error, PartialEq)]
pub(crate) enum Reason {
    #[error("order id: expected letters, digits, `-` and `_`, 1 to {LONGEST_ID} of them")]
    OrderId,
    #[error("duplicate order: {first} has this number already")]
    Duplicate { first: String },
    #[error("no such order: {lines} line(s) name an order that does not exist")]
    NoSuchOrder { lines: usize },
    #[error("no lines: an order needs at least one")]
    NoLines,
    #[error("missing field: `{field}` is empty")]
    Missing { field: &'static str },
    #[error("too long: `{field}` has {length} characters; expected at most {LONGEST_FIELD}")]
    TooLong { field: &'static str, length: usize },
    #[error("e-mail: `{value}` is no e-mail address")]
    Email { value: String },
    #[error("date: `{field}` is `{value}`; expected a day of the calendar as YYYY-MM-DD")]
    Date { field: &'static str, value: String },
    #[error("shipped before ordered: shipped {shipped}, ordered {ordered}")]
    ShippedBeforeOrdered { shipped: Date, ordered: Date },
    #[error("number: `{field}` is `{value}`; expected {expected}")]
    Number { field: &'static str, value: String, expected: &'static str },
    #[error(
        "price: {price} for `{product}`; expected 0 or more, below 1000000000, with at most four decimals"
    )]
    Price { product: String, price: Decimal },
    #[error("quantity: {quantity} of `{product}`; expected 1 to {MOST_PIECES}")]
    Quantity { product: String, quantity: i64 },
    #[error("discount: {discount} on `{product}`; expected 0 to 1 with at most four decimals")]
    Discount { product: String, discount: Decimal },
    #[error("freight: {freight}; expected 0 or more, below 1000000000, in whole cents")]
    Freight { freight: Decimal },
    #[error("total: {total} is given, but the lines add up to {sum}")]
    Total { total: Decimal, sum: Decimal },
}

impl Order {
    /// Checks an entry.
    pub(crate) fn check(entry: &Entry) -> Result<Self, InvalidOrder> {
        Self::read(entry).map_err(|reason| InvalidOrder {
            order_id: entry.order_id.chars().take(LONGEST_ID).collect(),
            place: entry.place.clone(),
            reason,
        })
    }

    fn read(entry: &Entry) -> Result<Self, Reason> {
        let id = id(entry)?;
        if let Some(first) = &entry.repeats {
            return Err(Reason::Duplicate { first: first.clone() });
        }
        let record = entry.record.as_ref().ok_or(Reason::NoSuchOrder { lines: entry.lines.len() })?;
        if entry.lines.is_empty() {
            return Err(Reason::NoLines);
        }
        let order = Self {
            id,
            ordered: date("order_date", &record.order_date)?,
            shipped: match record.shipped_date.trim() {
                "" => None,
                shipped => Some(date("shipped_date", shipped)?),
            },
            company: required("company", &record.company)?,
            contact: required("contact_name", &record.contact_name)?,
            email: address(&record.email)?,
            ship_to: ship_to(record)?,
            freight: decimal("freight", &record.freight)?,
            lines: entry.lines.iter().map(Line::read).collect::<Result<_, _>>()?,
            total: decimal("total", &record.total)?,
        };
        order.adds_up()?;
        Ok(order)
    }

    /// The rules that take more than one field to see.
    fn adds_up(&self) -> Result<(), Reason> {
        if let Some(shipped) = self.shipped.filter(|shipped| *shipped < self.ordered) {
            return Err(Reason::ShippedBeforeOrdered { shipped, ordered: self.ordered });
        }
        if !is_amount(self.freight, 2) {
            return Err(Reason::Freight { freight: self.freight });
        }
        let sum: Decimal = self.lines.iter().map(|line| line.amount).sum();
        // The total is the sum rounded to the cent. A sum that ends in half a cent may have been rounded either way, as
        // sources differ in that.
        let half_a_cent = Decimal::new(5, 3);
        let off = sum.checked_sub(self.total).map(|off| off.abs());
        match off {
            Some(off) if off <= half_a_cent && self.total.normalize().scale() <= 2 => Ok(()),
            _ => Err(Reason::Total { total: self.total, sum: sum.normalize() }),
        }
    }
}

impl Line {
    fn read(record: &LineRecord) -> Result<Self, Reason> {
        let product = required("product", &record.product)?;
        let unit_price = decimal("unit_price", &record.unit_price)?;
        let quantity = whole("quantity", &record.quantity)?;
        let discount = decimal("discount", &record.discount)?;
        if !is_amount(unit_price, 4) {
            return Err(Reason::Price { product, price: unit_price });
        }
        let Some(quantity) = u32::try_from(quantity).ok().filter(|_| (1..=MOST_PIECES).contains(&quantity))
        else {
            return Err(Reason::Quantity { product, quantity });
        };
        if !is_amount(discount, 4) || discount > Decimal::ONE {
            return Err(Reason::Discount { product, discount });
        }
        // Exact, as 15 digits before the point and 8 behind it are fewer than a `Decimal` has.
        let amount = unit_price * Decimal::from(quantity) * (Decimal::ONE - discount);
        Ok(Self { product, unit_price, quantity, discount, amount })
    }
}

/// The number under which the order is confirmed. It names a file, so it must be harmless as a name, and must differ
/// from round to round: the dot is for that alone.
fn id(entry: &Entry) -> Result<String, Reason> {
    let id = &entry.order_id;
    let harmless = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !(1..=LONGEST_ID).contains(&id.len()) || !id.bytes().all(harmless) {
        return Err(Reason::OrderId);
    }
    Ok(match entry.round {
        1 => id.clone(),
        round => format!("{id}.{round}"),
    })
}

fn ship_to(record: &OrderRecord) -> Result<Vec<String>, Reason> {
    let postal_code = bounded("ship_postal_code", &record.ship_postal_code)?.trim();
    let city = bounded("ship_city", &record.ship_city)?.trim();
    let region = bounded("ship_region", &record.ship_region)?.trim();
    let place = [postal_code, city, region].map(str::to_owned).into_iter().filter(|part| !part.is_empty());
    let lines = [
        bounded("ship_name", &record.ship_name)?,
        bounded("ship_address", &record.ship_address)?,
        &place.collect::<Vec<_>>().join(" "),
        bounded("ship_country", &record.ship_country)?,
    ];
    Ok(lines.map(|line| line.trim().to_owned()).into_iter().filter(|line| !line.is_empty()).collect())
}

fn bounded<'a>(field: &'static str, value: &'a str) -> Result<&'a str, Reason> {
    match value.chars().count() {
        length if length > LONGEST_FIELD => Err(Reason::TooLong { field, length }),
        _ => Ok(value),
    }
}

fn required(field: &'static str, value: &str) -> Result<String, Reason> {
    match bounded(field, value)?.trim() {
        "" => Err(Reason::Missing { field }),
        value => Ok(value.to_owned()),
    }
}

/// Addresses beyond ASCII would need mail servers that all speak SMTPUTF8. One must also be readable in a header, which
/// excludes some that are addresses by themselves: `jo@[127.0.0.1]`.
fn address(value: &str) -> Result<Address, Reason> {
    let value = bounded("email", value)?;
    let address = value.parse::<Address>().ok().filter(|_| value.is_ascii());
    let address =
        address.filter(|address| value.parse().is_ok_and(|Mailbox { email, .. }| email == *address));
    address.ok_or_else(|| Reason::Email { value: value.to_owned() })
}

fn date(field: &'static str, value: &str) -> Result<Date, Reason> {
    bounded(field, value)?.parse().map_err(|_| Reason::Date { field, value: value.to_owned() })
}

fn decimal(field: &'static str, value: &str) -> Result<Decimal, Reason> {
    Decimal::from_str_exact(bounded(field, value)?)
        .map_err(|_| not_a_number(field, value, "a decimal number"))
}

fn whole(field: &'static str, value: &str) -> Result<i64, Reason> {
    bounded(field, value)?.parse().map_err(|_| not_a_number(field, value, "a whole number"))
}

fn not_a_number(field: &'static str, value: &str, expected: &'static str) -> Reason {
    Reason::Number { field, value: value.to_owned(), expected }
}

/// Whether it is an amount that can be shown as it is: not negative, below a thousand million, with so many decimals.
fn is_amount(amount: Decimal, decimals: u32) -> bool {
    (Decimal::ZERO..Decimal::from(1_000_000_000)).contains(&amount) && amount.normalize().scale() <= decimals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        let text = |text: &str| text.to_owned();
        Entry {
            order_id: text("5001"),
            round: 1,
            place: text("orders.csv:2"),
            record: Some(OrderRecord {
                order_id: text("5001"),
                order_date: text("2025-01-02"),
                company: text("Brød & Smør, ApS"),
                contact_name: text("Søren Ågård"),
                email: text("soren@brodsmor.example"),
                ship_city: text("Aarhus"),
                ship_postal_code: text("8000"),
                freight: text("3.50"),
                total: text("19.95"),
                ..OrderRecord::default()
            }),
            lines: vec![LineRecord {
                product: text("Gjetost"),
                unit_price: text("7.00"),
                quantity: text("3"),
                discount: text("0.05"),
                ..LineRecord::default()
            }],
            repeats: None,
        }
    }

    /// The class of what is wrong with the entry, after the change.
    fn class(change: impl FnOnce(&mut Entry, &mut OrderRecord, &mut LineRecord)) -> String {
        let mut entry = entry();
        let mut record = entry.record.clone().unwrap();
        let mut line = entry.lines[0].clone();
        change(&mut entry, &mut record, &mut line);
        entry.record = entry.record.map(|_| record);
        entry.lines.iter_mut().for_each(|old| *old = line.clone());
        match Order::check(&entry) {
            Ok(_) => "valid".to_owned(),
            Err(invalid) => invalid.to_string().split_once(": ").unwrap().0.to_owned(),
        }
    }

    #[test]
    fn a_sound_entry_is_an_order() {
        let order = Order::check(&entry()).unwrap();
        assert_eq!(order.lines[0].amount, Decimal::new(1995, 2));
        assert_eq!(order.ship_to, ["8000 Aarhus"]);
        assert_eq!(order.shipped, None);
    }

    #[test]
    fn every_fault_has_its_class() {
        let set = |field: &mut String, value: &str| value.clone_into(field);
        assert_eq!(class(|entry, _, _| set(&mut entry.order_id, "")), "order id");
        assert_eq!(class(|entry, _, _| set(&mut entry.order_id, "../1")), "order id");
        assert_eq!(class(|entry, _, _| entry.repeats = Some("orders.csv:2".to_owned())), "duplicate order");
        assert_eq!(class(|entry, _, _| entry.record = None), "no such order");
        assert_eq!(class(|entry, _, _| entry.lines.clear()), "no lines");
        assert_eq!(class(|_, record, _| set(&mut record.company, "")), "missing field");
        assert_eq!(class(|_, record, _| set(&mut record.contact_name, " ")), "missing field");
        assert_eq!(class(|_, _, line| set(&mut line.product, "")), "missing field");
        assert_eq!(class(|_, record, _| set(&mut record.email, "")), "e-mail");
        assert_eq!(class(|_, record, _| set(&mut record.email, "a@b@c.example")), "e-mail");
        assert_eq!(class(|_, record, _| set(&mut record.email, "søren@c.example")), "e-mail");
        assert_eq!(class(|_, record, _| set(&mut record.order_date, "02.01.2025")), "date");
        assert_eq!(class(|_, record, _| set(&mut record.shipped_date, "soon")), "date");
        assert_eq!(
            class(|_, record, _| set(&mut record.shipped_date, "2025-01-01")),
            "shipped before ordered"
        );
        assert_eq!(class(|_, record, _| set(&mut record.total, "")), "number");
        assert_eq!(class(|_, _, line| set(&mut line.quantity, "1.5")), "number");
        assert_eq!(class(|_, _, line| set(&mut line.unit_price, "7,00")), "number");
        assert_eq!(class(|_, _, line| set(&mut line.unit_price, "-7")), "price");
        assert_eq!(class(|_, _, line| set(&mut line.quantity, "0")), "quantity");
        assert_eq!(class(|_, _, line| set(&mut line.quantity, "-3")), "quantity");
        assert_eq!(class(|_, _, line| set(&mut line.discount, "1.01")), "discount");
        assert_eq!(class(|_, _, line| set(&mut line.discount, "-0.01")), "discount");
        assert_eq!(class(|_, record, _| set(&mut record.freight, "-1")), "freight");
        assert_eq!(class(|_, record, _| set(&mut record.total, "19.96")), "total");
        assert_eq!(class(|_, record, _| set(&mut record.total, "19.951")), "total");
    }

    #[test]
    fn amounts_that_cannot_be_shown_are_refused_not_rounded() {
        let huge = "79228162514264337593543950335";
        let tiny = "0.0000000000000000000000000001";
        let set = |field: &mut String, value: &str| value.clone_into(field);
        for price in [huge, tiny, "1000000000", "0.00001"] {
            assert_eq!(class(|_, _, line| set(&mut line.unit_price, price)), "price", "{price}");
        }
        for quantity in ["1000001", "9223372036854775807"] {
            assert_eq!(class(|_, _, line| set(&mut line.quantity, quantity)), "quantity", "{quantity}");
        }
        assert_eq!(class(|_, _, line| set(&mut line.quantity, huge)), "number");
        for discount in [tiny, "0.05001"] {
            assert_eq!(class(|_, _, line| set(&mut line.discount, discount)), "discount", "{discount}");
        }
        for freight in [huge, tiny, "3.501"] {
            assert_eq!(class(|_, record, _| set(&mut record.freight, freight)), "freight", "{freight}");
        }
        assert_eq!(class(|_, record, _| set(&mut record.total, &format!("-{huge}"))), "total");
    }

    #[test]
    fn the_greatest_amount_is_exact() {
        let most = class(|_, record, line| {
            "999999999.9999".clone_into(&mut line.unit_price);
            "1000000".clone_into(&mut line.quantity);
            "0.0001".clone_into(&mut line.discount);
            "999899999999900.01".clone_into(&mut record.total);
        });
        assert_eq!(most, "valid");
    }

    #[test]
    fn a_field_of_any_length_is_refused_and_not_repeated() {
        let long = "1".repeat(LONGEST_FIELD + 1);
        let set = |field: &mut String| long.clone_into(field);
        assert_eq!(class(|_, record, _| set(&mut record.order_date)), "too long");
        assert_eq!(class(|_, record, _| set(&mut record.shipped_date)), "too long");
        assert_eq!(class(|_, record, _| set(&mut record.company)), "too long");
        assert_eq!(class(|_, record, _| set(&mut record.contact_name)), "too long");
        assert_eq!(class(|_, record, _| set(&mut record.email)), "too long");
        assert_eq!(class(|_, record, _| set(&mut record.ship_name)), "too long");
        assert_eq!(class(|_, record, _| set(&mut record.ship_address)), "too long");
        assert_eq!(class(|_, record, _| set(&mut record.ship_city)), "too long");
        assert_eq!(class(|_, record, _| set(&mut record.ship_region)), "too long");
        assert_eq!(class(|_, record, _| set(&mut record.ship_postal_code)), "too long");
        assert_eq!(class(|_, record, _| set(&mut record.ship_country)), "too long");
        assert_eq!(class(|_, record, _| set(&mut record.freight)), "too long");
        assert_eq!(class(|_, record, _| set(&mut record.total)), "too long");
        assert_eq!(class(|_, _, line| set(&mut line.product)), "too long");
        assert_eq!(class(|_, _, line| set(&mut line.unit_price)), "too long");
        assert_eq!(class(|_, _, line| set(&mut line.quantity)), "too long");
        assert_eq!(class(|_, _, line| set(&mut line.discount)), "too long");
        let invalid = Order::check(&Entry { order_id: long, ..entry() }).unwrap_err();
        assert!(invalid.to_string().len() < 200, "{invalid}");
    }

    #[test]
    fn an_address_that_no_header_can_hold_is_none() {
        let email = |value: &str| class(|_, record, _| value.clone_into(&mut record.email));
        for bad in
            ["\"a b\"@x.example", "jo@[127.0.0.1]", "<jo@x.example>", "Jo <jo@x.example>", " jo@x.example"]
        {
            assert_eq!(email(bad), "e-mail", "{bad}");
        }
        for good in ["jo+orders@x.example", "o'neil_jr@sub.x-y.example"] {
            assert_eq!(email(good), "valid", "{good}");
        }
    }

    #[test]
    fn half_a_cent_may_have_been_rounded_either_way() {
        let with_total = |total: &str| {
            class(|_, record, line| {
                "0.125".clone_into(&mut line.discount); // 3 × 7.00 × 0.875 = 18.375
                total.clone_into(&mut record.total);
            })
        };
        assert_eq!(
            ["18.36", "18.37", "18.38", "18.39"].map(with_total),
            ["total", "valid", "valid", "total"]
        );
    }

    #[test]
    fn rounds_never_share_an_order_number() {
        let mut second = Entry { round: 2, ..entry() };
        assert_eq!(Order::check(&second).unwrap().id, "5001.2");
        second = Entry { order_id: "5001.2".to_owned(), ..entry() };
        assert_eq!(Order::check(&second).unwrap_err().reason, Reason::OrderId);
    }
}

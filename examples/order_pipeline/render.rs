//! The words of a confirmation, as text and as HTML.

use std::fmt::Write;

use rust_decimal::{Decimal, RoundingStrategy};

use crate::order::{Line, Order};

const COLUMNS: [&str; 5] = ["Product", "Unit price", "Quantity", "Discount", "Amount"];

/// The confirmation as text, its lines and sums as a table of aligned columns.
pub(crate) fn text(order: &Order) -> String {
    format!(
        "Dear {contact},\n\n{opening}\n\n{table}\n{shipping}\n\n{address}\n",
        contact = order.contact,
        opening = opening(order),
        table = table(order),
        shipping = shipping(order),
        address = order.ship_to.join("\n"),
    )
}

fn table(order: &Order) -> String {
    let sums = sums(order).map(|(name, sum)| ["", "", "", name, &sum].map(str::to_owned));
    let rows: Vec<_> = std::iter::once(COLUMNS.map(str::to_owned))
        .chain(order.lines.iter().map(cells))
        .chain(sums)
        .collect();
    let [product, price, quantity, discount, amount]: [usize; 5] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    rows.iter()
        .map(|[a, b, c, d, e]| {
            format!("{a:product$}  {b:>price$}  {c:>quantity$}  {d:>discount$}  {e:>amount$}\n")
        })
        .collect()
}

/// The confirmation as HTML, its lines as a table.
pub(crate) fn html(order: &Order) -> String {
    let mut table = String::new();
    for (tag, cells) in std::iter::once(("th", COLUMNS.map(str::to_owned)))
        .chain(order.lines.iter().map(|line| ("td", cells(line))))
    {
        let cells = cells.map(|cell| format!("<{tag}>{}</{tag}>", escape(&cell))).concat();
        let _ = writeln!(table, "<tr>{cells}</tr>");
    }
    for (name, sum) in sums(order) {
        let _ = writeln!(table, "<tr><th colspan=\"4\">{name}</th><td>{sum}</td></tr>");
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"></head><body>\n<p>Dear {contact},</p>\n\
         <p>{opening}</p>\n<table>\n{table}</table>\n<p>{shipping}</p>\n<address>{address}</address>\n</body></html>\n",
        contact = escape(&order.contact),
        opening = escape(&opening(order)),
        shipping = shipping(order),
        address = order.ship_to.iter().map(|line| escape(line)).collect::<Vec<_>>().join("<br>"),
    )
}

fn opening(order: &Order) -> String {
    format!("thank you for order {} of {} for {}:", order.id, order.ordered, order.company)
}

fn shipping(order: &Order) -> String {
    match order.shipped {
        Some(shipped) => format!("It was shipped on {shipped} to:"),
        None => "It will be shipped to:".to_owned(),
    }
}

fn cells(line: &Line) -> [String; 5] {
    [
        line.product.clone(),
        price(line.unit_price),
        line.quantity.to_string(),
        format!("{} %", (line.discount * Decimal::ONE_HUNDRED).normalize()),
        money(line.amount),
    ]
}

fn sums(order: &Order) -> [(&'static str, String); 2] {
    [("Total", money(order.total)), ("Freight", money(order.freight))]
}

/// A price as exact as it is given, at least to the cent.
fn price(price: Decimal) -> String {
    let mut price = price.normalize();
    price.rescale(price.scale().max(2));
    price.to_string()
}

fn money(amount: Decimal) -> String {
    let mut cents = amount.round_dp_with_strategy(2, RoundingStrategy::MidpointAwayFromZero);
    cents.rescale(2);
    cents.to_string()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        Order {
            id: "5001".to_owned(),
            ordered: "2025-01-02".parse().unwrap(),
            shipped: None,
            company: "<b>Brød & Smør</b>".to_owned(),
            contact: "Søren".to_owned(),
            email: "soren@brodsmor.example".parse().unwrap(),
            ship_to: vec!["Æblevej \"4\"".to_owned(), "Aarhus".to_owned()],
            freight: Decimal::new(35, 1),
            lines: vec![Line {
                product: "Crème <brûlée>".to_owned(),
                unit_price: Decimal::new(7, 0),
                quantity: 3,
                discount: Decimal::new(125, 3),
                amount: Decimal::new(18_375, 3),
            }],
            total: Decimal::new(1838, 2),
        }
    }

    #[test]
    fn the_columns_of_the_text_are_aligned_and_money_has_cents() {
        let text = text(&order());
        let table: Vec<_> = text.lines().skip(4).take(4).collect();
        assert_eq!(
            table,
            [
                "Product         Unit price  Quantity  Discount  Amount",
                "Crème <brûlée>        7.00         3    12.5 %   18.38",
                "                                         Total   18.38",
                "                                       Freight    3.50",
            ]
        );
        assert!(text.ends_with("\n\nIt will be shipped to:\n\nÆblevej \"4\"\nAarhus\n"), "{text}");
    }

    #[test]
    fn columns_are_as_wide_as_what_they_hold() {
        let mut order = order();
        order.lines[0].unit_price = Decimal::new(9_999_999_999_999, 4);
        order.lines[0].amount = Decimal::new(99_989_999_999_990_001, 2);
        let text = text(&order);
        let table: Vec<_> = text.lines().skip(4).take(2).collect();
        assert_eq!(
            table,
            [
                "Product             Unit price  Quantity  Discount              Amount",
                "Crème <brûlée>  999999999.9999         3    12.5 %  999899999999900.01",
            ]
        );
    }

    #[test]
    fn what_an_order_says_is_no_markup() {
        let html = html(&order());
        assert!(
            html.contains(
                "<td>Crème &lt;brûlée&gt;</td><td>7.00</td><td>3</td><td>12.5 %</td><td>18.38</td>"
            )
        );
        assert!(html.contains("&lt;b&gt;Brød &amp; Smør&lt;/b&gt;"));
        assert!(html.contains("Æblevej &quot;4&quot;<br>Aarhus"));
    }
}

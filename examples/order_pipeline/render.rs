//! The words of a confirmation, as text and as HTML.

use std::fmt::Write;

use rust_decimal::{Decimal, RoundingStrategy};

use crate::order::{Line, Order};

const COLUMNS: [&str; 5] = ["Product", "Unit price", "Quantity", "Discount", "Amount"];

/// The confirmation as text, its lines as a table of aligned columns.
pub(crate) fn text(order: &Order) -> String {
    let rows: Vec<_> = order.lines.iter().map(cells).collect();
    let [total, freight] = sums(order);
    let width = rows.iter().map(|[product, ..]| product.chars().count()).max().unwrap_or(0).max(10);
    let row = |[product, price, quantity, discount, amount]: &[String; 5]| {
        format!("{product:width$}{price:>12}{quantity:>10}{discount:>10}{amount:>14}\n")
    };
    format!(
        "Dear {contact},\n\n{opening}\n\n{head}{body}{total:>sums$}\n{freight:>sums$}\n\n{shipping}\n\n{address}\n",
        contact = order.contact,
        opening = opening(order),
        head = row(&COLUMNS.map(str::to_owned)),
        body = rows.iter().map(row).collect::<String>(),
        total = format!("Total {total:>13}"),
        freight = format!("Freight {freight:>13}"),
        sums = width + 46,
        shipping = shipping(order),
        address = order.ship_to.join("\n"),
    )
}

/// The confirmation as HTML, its lines as a table.
pub(crate) fn html(order: &Order) -> String {
    let [total, freight] = sums(order);
    let mut table = String::new();
    for (tag, cells) in std::iter::once(("th", COLUMNS.map(str::to_owned)))
        .chain(order.lines.iter().map(|line| ("td", cells(line))))
    {
        let cells = cells.map(|cell| format!("<{tag}>{}</{tag}>", escape(&cell))).concat();
        let _ = writeln!(table, "<tr>{cells}</tr>");
    }
    for (name, sum) in [("Total", total), ("Freight", freight)] {
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
        money(line.unit_price),
        line.quantity.to_string(),
        format!("{} %", (line.discount * Decimal::ONE_HUNDRED).normalize()),
        money(line.amount),
    ]
}

fn sums(order: &Order) -> [String; 2] {
    [money(order.total), money(order.freight)]
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
                "Product         Unit price  Quantity  Discount        Amount",
                "Crème <brûlée>        7.00         3    12.5 %         18.38",
                "                                         Total         18.38",
                "                                       Freight          3.50",
            ]
        );
        assert!(text.ends_with("It will be shipped to:\n\nÆblevej \"4\"\nAarhus\n"), "{text}");
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

//! The e-mails, read by a parser that is not the writer's.

use std::collections::HashMap;
use std::path::Path;

use mailparse::{MailHeaderMap, ParsedMail, addrparse_header, parse_mail};

use crate::program::{Ended, Program};
use crate::reference::{Row, other_orders, rows, sample, sound_orders};

#[test]
fn every_email_of_the_sample_reads_back_as_its_order() {
    let ended = Program::start("order_pipeline", ["--outbox", "outbox"]).end();
    check(&ended, &sound_orders(), &sample());
}

#[test]
fn every_email_of_orders_from_elsewhere_reads_back_as_its_order() {
    let Some(folder) = other_orders() else { return };
    let [orders, lines] = ["orders.csv", "order_lines.csv"].map(|file| folder.join(file));
    let arguments = [
        "--outbox".as_ref(),
        "outbox".as_ref(),
        "--orders".as_ref(),
        orders.as_os_str(),
        "--lines".as_ref(),
        lines.as_os_str(),
    ];
    let ended = Program::start("order_pipeline", arguments).end();
    check(&ended, &rows(&folder, "orders.csv"), &folder);
}

fn check(ended: &Ended, orders: &[Row], folder: &Path) {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut lines = HashMap::<String, Vec<Row>>::new();
    for line in rows(folder, "order_lines.csv") {
        lines.entry(line["order_id"].clone()).or_default().push(line);
    }
    let mails: HashMap<_, _> = ended.files("outbox").into_iter().collect();
    assert_eq!(mails.len(), orders.len());
    for order in orders {
        let id = &order["order_id"];
        check_mail(&mails[&format!("order-{id}.eml")], order, &lines[id]);
    }
}

fn check_mail(bytes: &[u8], order: &Row, lines: &[Row]) {
    let id = &order["order_id"];
    assert!(bytes.is_ascii(), "order {id} is not encoded");
    assert!(bytes.split(|byte| *byte == b'\n').all(|line| line.len() <= 998), "order {id} has long lines");
    let mail = parse_mail(bytes).unwrap();
    let header = |name: &str| mail.headers.get_first_value(name).unwrap_or_else(|| panic!("{id}: no {name}"));

    let to = addrparse_header(mail.headers.get_first_header("To").unwrap()).unwrap();
    let to = to.extract_single_info().unwrap();
    assert_eq!(to.addr, order["email"]);
    assert_eq!(to.display_name.as_deref(), Some(order["contact_name"].as_str()));
    assert_eq!(header("Subject"), format!("Your order {id} for {}", order["company"]));
    assert_eq!(header("Message-ID"), format!("<order-{id}@corriere.example>"));
    assert_eq!(header("MIME-Version"), "1.0");
    assert!(mailparse::dateparse(&header("Date")).is_ok());
    assert!(header("From").ends_with("<orders@corriere.example>"));

    assert_eq!(mail.ctype.mimetype, "multipart/alternative");
    let [text, html] = &mail.subparts[..] else { panic!("{id}: {} parts", mail.subparts.len()) };
    let text = body(text, "text/plain");
    let html = body(html, "text/html");
    let rows = html.matches("<tr><td>").count();
    assert_eq!(rows, lines.len(), "order {id}");
    for line in lines {
        assert!(text.contains(&line["product"]), "{text}");
        assert!(html.contains(&format!("<td>{}</td>", escape(&line["product"]))), "{html}");
    }
    for words in [&order["contact_name"], &order["company"], &order["total"], &order["freight"]] {
        assert!(text.contains(words), "{words} is not in {text}");
        assert!(html.contains(&escape(words)), "{words} is not in {html}");
    }
}

fn body(part: &ParsedMail<'_>, kind: &str) -> String {
    assert_eq!(part.ctype.mimetype, kind);
    assert_eq!(part.ctype.charset, "utf-8");
    part.get_body().unwrap()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

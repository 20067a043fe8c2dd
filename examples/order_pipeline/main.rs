//! x
mod date;
mod email;
mod input;
mod order;
mod render;
mod rows;
fn main() {
    let dir = std::path::PathBuf::from(std::env::args().nth(1).unwrap());
    let outbox = corriere_examples::Outbox::open("/tmp/outbox").unwrap();
    let mut ok = 0;
    let mut bad = std::collections::BTreeMap::<String, u32>::new();
    match input::read(&dir.join("orders.csv"), &dir.join("order_lines.csv")) {
        Err(e) => println!("{e}"),
        Ok(entries) => {
            for e in entries {
                match order::Order::check(&e) {
                    Ok(o) => {
                        ok += 1;
                        let m = email::Email::confirming(&o);
                        outbox.put(&m.file_name(), &m.to_mime().unwrap()).unwrap();
                    }
                    Err(e) => {
                        println!("{e}");
                        *bad.entry(e.to_string().split(':').next().unwrap().to_owned()).or_default() += 1;
                    }
                }
            }
        }
    }
    println!("{ok} {bad:?}");
}

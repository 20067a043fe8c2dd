use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(queue = "orders")]
async fn on_order(_order: &Order) {}

#[jms_listener(queue = "texts")]
async fn on_text(_text: &str) {}

fn main() {}

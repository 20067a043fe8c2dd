use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(queue = "orders", topic = "prices")]
async fn on_order(_order: Order) {}

fn main() {}

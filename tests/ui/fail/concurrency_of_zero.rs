use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(queue = "orders", concurrency = "0")]
async fn on_order(_order: Order) {}

fn main() {}

use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(queue = "orders", ack = "clent")]
async fn on_order(_order: Order) {}

fn main() {}

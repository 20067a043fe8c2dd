use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(queue = "orders")]
async fn on_order(_order: Order, _delivery: Delivery, _number: u64) {}

#[jms_listener(queue = "orders")]
async fn on_other(_order: Payload<Order>, _text: String) {}

fn main() {}

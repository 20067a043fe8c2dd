use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(queue = "orders")]
#[jms_listener(queue = "orders.export", id = "export")]
async fn on_order(_order: Order) {}

fn main() {}

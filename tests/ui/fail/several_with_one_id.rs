use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(queue = "orders", id = "local-orders")]
#[jms_listener(queue = "orders.export", id = "local_orders")]
async fn on_order(_order: Order) {}

fn main() {}

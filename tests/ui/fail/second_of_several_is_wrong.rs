use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(queue = "orders", id = "local")]
#[jms_listener(queu = "orders.export", id = "export")]
async fn on_order(_order: Order) {}

fn main() {}

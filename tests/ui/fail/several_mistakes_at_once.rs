use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(queue = "orders", selector = "x", ack = "none", concurrency = "2-1")]
async fn on_order<T>(&self, _order: &Order) {}

fn main() {}

use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(queue = "orders")]
extern "C" fn on_order(_order: Order) {}

fn main() {}

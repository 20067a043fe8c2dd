use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(queue = "orders")]
async fn on_order<T>(_order: T) {}

#[jms_listener(queue = "orders")]
async fn on_other<const N: usize>(_order: Order) {}

fn main() {}

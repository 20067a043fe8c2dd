use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(queue = "orders")]
fn on_order(_order: Order) -> impl Future<Output = ()> {
    async {}
}

fn main() {}

use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

struct Service;

impl Service {
    #[jms_listener(queue = "orders")]
    async fn on_order(&self, _order: Order) {}
}

fn main() {}

use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

trait Listens {
    #[jms_listener(queue = "orders")]
    fn on_order(order: Order);
}

fn main() {}

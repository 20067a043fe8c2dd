use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(queue = "orders")]
async fn on_order(_order: Payload<std::rc::Rc<u8>>) {}

fn main() {}

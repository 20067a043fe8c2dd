use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(queue = "orders")]
async fn on_order(_order: impl Sized) {}

fn main() {}

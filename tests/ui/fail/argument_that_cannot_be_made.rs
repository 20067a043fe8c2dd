use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

struct Undescribed;

#[jms_listener(queue = "orders")]
async fn on_order(_order: Order, _other: Undescribed) {}

fn main() {}

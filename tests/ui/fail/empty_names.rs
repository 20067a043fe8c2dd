use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(queue = "", send_to = " ", id = "", container = "")]
async fn on_order(_order: Order) {}

fn main() {}

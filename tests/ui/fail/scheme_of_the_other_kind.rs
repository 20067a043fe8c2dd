use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(queue = "topic://prices")]
async fn on_price(_order: Order) {}

#[jms_listener(topic = "queue://orders")]
async fn on_order(_order: Order) {}

fn main() {}

use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(
    topic = "prices",
    selector = "price > 10",
    durable,
    shared = true,
    converter = "text",
    reply_to = "answers"
)]
async fn on_price(_order: Order) {}

fn main() {}

use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(topic = "prices", concurrency = "1-2")]
async fn on_price(_order: Order) {}

fn main() {}

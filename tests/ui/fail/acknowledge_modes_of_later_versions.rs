use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(queue = "orders", ack = "individual")]
async fn one(_order: Order) {}

#[jms_listener(queue = "orders", ack = "dups_ok")]
async fn two(_order: Order) {}

fn main() {}

use corriere::prelude::*;

mod orders {}

#[jms_listener(queue = "orders")]
async fn orders(_order: String) {}

fn main() {}

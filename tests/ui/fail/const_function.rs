use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(queue = "orders")]
const fn on_order(_number: u64) {}

fn main() {}

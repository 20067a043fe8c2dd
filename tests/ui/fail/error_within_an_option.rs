use corriere::prelude::*;

#[jms_listener(queue = "orders")]
async fn on_order(_order: String) -> Option<Result<String, String>> {
    None
}

fn main() {}

use corriere::prelude::*;

struct Service;

impl Service {
    #[jms_listener(queue = "orders")]
    async fn on_order(_order: String) {}

    #[jms_listener(queue = "{ not a brace } // nor a comment")]
    pub fn on_blocking(_order: String) {}
}

fn main() {}

use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

struct Undescribed;

#[jms_listener(queue = "orders")]
async fn on_order(_order: Order) -> Undescribed {
    Undescribed
}

#[jms_listener(queue = "orders")]
async fn on_other(_order: Order) -> Result<Undescribed, ListenerError> {
    Ok(Undescribed)
}

#[jms_listener(queue = "orders")]
fn on_blocking(_order: Order) -> Option<Undescribed> {
    None
}

fn main() {}

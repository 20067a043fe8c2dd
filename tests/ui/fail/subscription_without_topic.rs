use corriere::prelude::*;

#[derive(Deserialize)]
struct Price {}

#[jms_listener(queue = "prices", subscription = "audit", client_id = "auditor")]
async fn on_queue(_price: Price) {}

#[jms_listener(queue = "prices", client_id = "auditor")]
async fn with_a_client_id(_price: Price) {}

#[jms_listener(subscription = "audit")]
async fn nowhere(_price: Price) {}

#[jms_listener(topic = "prices", subscription = " ")]
async fn without_a_name(_price: Price) {}

fn main() {}

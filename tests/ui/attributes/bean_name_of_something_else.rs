use corriere::prelude::*;

struct Mailer;

#[corriere::bean(type = "mailer")]
impl Mailer {
    fn new(#[bean("url")] _url: String) -> Self {
        Self
    }
}

#[jms_listener(queue = "a")]
async fn on_order(#[bean("order")] _order: String, #[bean("session")] _session: Session) {}

fn main() {}

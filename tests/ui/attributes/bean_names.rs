use corriere::prelude::*;

struct Mailer;

#[corriere::bean(type = "mailer")]
impl Mailer {
    fn new(
        #[bean] _one: Bean<u8>,
        #[bean("")] _two: Bean<u8>,
        #[bean(name = "a")] _three: Bean<u8>,
        #[bean("a")]
        #[bean("b")]
        _four: Bean<u8>,
    ) -> Self {
        Self
    }
}

#[jms_listener(queue = "a")]
async fn on_order(#[bean] _one: Bean<u8>, #[bean("a", "b")] _two: Bean<u8>) {}

fn main() {}

use std::sync::Arc;

struct Settings;
struct Mailer;

#[corriere::bean(type = "mailer")]
impl Mailer {
    fn new(_settings: Settings) -> Self {
        Self
    }
}

struct Pool;

#[corriere::bean(type = "clerk")]
fn clerk(_pool: Arc<Pool>) -> u8 {
    0
}

fn main() {}

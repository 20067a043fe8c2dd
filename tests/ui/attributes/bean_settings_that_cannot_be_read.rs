struct Settings;
struct Mailer;

#[corriere::bean(type = "mailer")]
impl Mailer {
    fn new(_settings: Settings) -> Self {
        Self
    }
}

fn main() {}

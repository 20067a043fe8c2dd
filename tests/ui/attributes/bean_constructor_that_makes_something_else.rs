struct Mailer;

#[corriere::bean(type = "mailer")]
impl Mailer {
    fn new() -> Option<Self> {
        Some(Self)
    }
}

fn main() {}

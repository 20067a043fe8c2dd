struct Mailer;

#[corriere::bean(type = "mailer")]
impl Mailer {
    fn open() -> Self {
        Self
    }
}

fn main() {}

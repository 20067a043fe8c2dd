#[corriere::bean(type = "mailer")]
struct Mailer;

trait Made {
    fn new() -> Self;
}

#[corriere::bean(type = "made")]
impl Made for Mailer {
    fn new() -> Self {
        Self
    }
}

struct Cache<T>(T);

#[corriere::bean(type = "cache")]
impl<T> Cache<T> {
    fn new() -> Self {
        panic!()
    }
}

fn main() {}

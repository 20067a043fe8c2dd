struct Two;

#[corriere::bean(type = "two")]
impl Two {
    fn new(_host: String, _port: u16) -> Self {
        Self
    }
}

struct Receiver;

#[corriere::bean(type = "receiver")]
impl Receiver {
    fn new(self) -> Self {
        self
    }
}

struct Borrowed;

#[corriere::bean(type = "borrowed")]
impl Borrowed {
    fn new(_host: &str) -> Self {
        Self
    }
}

fn main() {}

use corriere::prelude::*;

struct Two;

#[corriere::bean(type = "two")]
impl Two {
    fn new(_host: String, _pool: Bean<u8>, _port: u16) -> Self {
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

struct Nameless;

#[corriere::bean(type = "nameless")]
impl Nameless {
    fn new(_host: impl Sized) -> Self {
        Self
    }
}

fn main() {}

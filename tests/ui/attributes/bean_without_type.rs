struct Mailer;

#[corriere::bean]
impl Mailer {
    fn new() -> Self {
        Self
    }
}

struct Clerk;

#[corriere::bean(typ = "clerk")]
impl Clerk {
    fn new() -> Self {
        Self
    }
}

struct Nameless;

#[corriere::bean(type = "")]
impl Nameless {
    fn new() -> Self {
        Self
    }
}

fn main() {}

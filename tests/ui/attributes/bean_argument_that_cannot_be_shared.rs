use std::rc::Rc;

use corriere::prelude::*;

struct Mailer;

#[corriere::bean(type = "mailer")]
impl Mailer {
    fn new(_local: Bean<Rc<u8>>) -> Self {
        Self
    }
}

fn main() {}

use std::rc::Rc;

struct Local(#[allow(dead_code)] Rc<u8>);

#[corriere::bean(type = "local")]
impl Local {
    fn new() -> Self {
        Self(Rc::new(1))
    }
}

fn main() {}

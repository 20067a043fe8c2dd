use corriere::prelude::*;

struct Pool;
struct Repository;

#[corriere::bean(type = "repository")]
impl Repository {
    fn new(_pool: Bean<Pool>) -> Self {
        Self
    }
}

fn main() {}

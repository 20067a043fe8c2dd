struct Pool;

#[corriere::bean(type = "pool")]
impl Pool {
    async fn new() -> Self {
        Self
    }
}

fn main() {}

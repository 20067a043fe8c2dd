use std::rc::Rc;

#[corriere::bean(type = "local")]
async fn local() -> u8 {
    let local = Rc::new(1);
    std::future::ready(()).await;
    *local
}

fn main() {}

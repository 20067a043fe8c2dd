use corriere::prelude::*;

#[corriere::test]
async fn an_order_is_confirmed(_app: TestApp, _other: u8) {}

#[corriere::test(start_paused = true)]
async fn an_order_is_refused(_app: TestApp) {}

fn main() {}

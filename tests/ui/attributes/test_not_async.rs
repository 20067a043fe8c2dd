use corriere::prelude::*;

#[corriere::test]
fn an_order_is_confirmed(_app: TestApp) {}

fn main() {}

#[corriere::test]
async fn an_order_is_confirmed() {}

fn main() {}

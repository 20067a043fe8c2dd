#[corriere::main]
fn main() {}

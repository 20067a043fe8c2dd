use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

#[jms_listener(queue = "orders")]
struct OnOrder;

#[jms_listener(queue = "orders")]
impl OnOrder {}

#[jms_listener(queue = "orders")]
mod listeners {}

#[jms_listener(queue = "orders")]
trait Listens {}

#[jms_listener(queue = "orders")]
const LISTENER: u8 = 0;

#[jms_listener(queue = "orders")]
use std::fmt;

fn main() {}

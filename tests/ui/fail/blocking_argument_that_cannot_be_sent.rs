use corriere::prelude::*;

#[derive(Deserialize)]
struct Order {}

struct Local(std::rc::Rc<u8>);

impl FromDelivery for Local {
    async fn from_delivery(_invocation: &mut Invocation) -> Result<Self, ListenerError> {
        Ok(Self(std::rc::Rc::new(1)))
    }
}

#[jms_listener(queue = "orders")]
fn on_order(_local: Local) {}

fn main() {}

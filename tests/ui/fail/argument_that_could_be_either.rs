use corriere::prelude::*;

#[derive(Deserialize)]
struct Tenant(String);

impl FromDelivery for Tenant {
    async fn from_delivery(_: &mut Invocation) -> Result<Self, ListenerError> {
        Ok(Self(String::new()))
    }
}

#[jms_listener(queue = "orders")]
async fn on_order(tenant: Tenant) {
    drop(tenant.0);
}

fn main() {}

//! Every kind of argument and return type, in a crate that forbids unsafe code.
#![forbid(unsafe_code)]
#![deny(warnings)]
#![deny(missing_docs)]

use corriere::prelude::*;

/// An order.
#[derive(Debug, Deserialize)]
pub struct Order {
    /// Its number.
    pub id: u64,
}

/// A receipt.
#[derive(Debug, Serialize)]
pub struct Receipt {
    order: u64,
}

/// Sends mail.
#[derive(Debug)]
pub struct Mailer;

/// Somebody's own argument.
#[derive(Debug)]
pub struct Tenant(pub String);

impl FromDelivery for Tenant {
    async fn from_delivery(invocation: &mut Invocation) -> Result<Self, ListenerError> {
        let tenant = invocation.message().property::<String>("tenant").or_dead_letter()?;
        Ok(Self(tenant.unwrap_or_default()))
    }
}

header! {
    /// Whose order it is.
    pub TenantId = "tenant": String;
    /// How often it was tried.
    pub Attempt = "attempt": i32
}

/// Keeps what is published while it does not run, one by one.
#[jms_listener(topic = "orders", subscription = "audit", client_id = "auditor", ack = "individual")]
pub async fn on_published(_order: Order) {}

/// May see an order twice.
#[jms_listener(topic = "orders", ack = "dups_ok")]
pub async fn on_seen(_order: Order) {}

/// Takes orders.
#[jms_listener(queue = "orders", ack = "transacted", concurrency = "2-8", send_to = "receipts")]
pub async fn on_order(
    order: Order,
    tenant: Header<TenantId>,
    attempt: Option<Header<Attempt>>,
    own: Tenant,
    mailer: Bean<Mailer>,
    headers: Headers,
    properties: Properties,
    session: Session,
    message: Message,
    delivery: Delivery,
) -> Result<Reply<Receipt>, ListenerError> {
    let text: &str = &tenant;
    delivery.acknowledge().await?;
    Err::<(), _>("no").or_retry_after(secs(5))?;
    drop((text, attempt, own, mailer, headers, properties, session, message));
    Ok(Reply::new(Receipt { order: order.id }).property("tenant", "x"))
}

header! { Private = "private": bool }

#[jms_listener(queue = "a")]
async fn nothing() {}

#[jms_listener(topic = "b", concurrency = "1", id = "b.prices", container = "slow", ack = "auto")]
async fn optional_payload(Payload(order): Payload<Option<Order>>) -> Option<Receipt> {
    order.map(|order| Receipt { order: order.id })
}

#[jms_listener(queue = "c", ack = "manual")]
async fn optional_reply(_order: Option<Order>, _private: Header<Private>) -> Result<Option<Reply<Receipt>>, std::io::Error> {
    Ok(None)
}

#[jms_listener(queue = "d", ack = "client")]
fn blocking(order: Order, _mailer: Bean<Mailer>) -> Result<Receipt, ListenerError> {
    Ok(Receipt { order: order.id })
}

#[jms_listener(queue = "e")]
fn blocking_without_result(text: String) {
    drop(text);
}

type Outcome = Result<(), ListenerError>;

#[jms_listener(queue = "f")]
async fn renamed_result(_number: u64) -> Outcome {
    Ok(())
}

#[jms_listener(id = "local", queue = "g")]
#[corriere::jms_listener(id = "export.orders", queue = "g.export")]
async fn twice(_order: Order) {}

fn main() {
    assert_eq!(on_order::DEF.id, "on_order");
    assert_eq!(on_order::DEF.concurrency.map(|concurrency| concurrency.upper()), Some(8));
    assert_eq!(on_order::DEF.bean_requests().count(), 1);
    assert!(on_order::DEF.replies && !on_order::DEF.blocking);
    assert!(!nothing::DEF.replies && blocking::DEF.replies && blocking::DEF.blocking);
    assert!(!renamed_result::DEF.blocking && !blocking_without_result::DEF.replies);
    assert_eq!(optional_payload::DEF.id, "b.prices");
    assert!(optional_reply::DEF.replies);
    assert_eq!(twice::DEFS.map(|listener| listener.id), ["local", "export.orders"]);
    assert_eq!(twice::EXPORT_ORDERS.destination.name(), "g.export");
    assert_eq!(twice::LOCAL.destination.name(), "g");
    assert_eq!(corriere::listener::ListenerDef::all().len(), 12);

    #[jms_listener(queue = "h")]
    async fn within_a_function() {}
    assert_eq!(within_a_function::DEF.id, "within_a_function");
}

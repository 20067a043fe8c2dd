//! Every form of a bean, in a crate that forbids unsafe code.
#![forbid(unsafe_code)]
#![deny(warnings)]
#![deny(missing_docs)]

use corriere::prelude::*;
use corriere::templates::MessageConverter;

/// What a pool is told.
#[derive(Debug, Deserialize)]
pub struct PoolConfig {
    /// Where it connects to.
    pub url: String,
}

/// A pool of connections.
#[derive(Debug)]
pub struct Pool(pub String);

#[corriere::bean(type = "pool", close = "close")]
async fn connect(config: PoolConfig) -> Result<Pool, std::io::Error> {
    Ok(Pool(config.url))
}

impl Pool {
    /// Closes it.
    pub async fn close(&self) {}
}

type Renamed = Bean<Pool>;
type Outcome = Result<Clerk, Box<dyn std::error::Error + Send + Sync>>;

/// Needs others.
#[derive(Debug)]
pub struct Clerk;

#[corriere::bean(type = "clerk")]
fn clerk(
    template: Bean<JmsTemplate>,
    #[bean("other")] pool: Renamed,
    PoolConfig { url }: PoolConfig,
    converter: Bean<dyn MessageConverter>,
    _unused: Bean<String>,
) -> Outcome {
    drop((template, pool, url, converter));
    Ok(Clerk)
}

/// Closed by a method that may fail.
#[derive(Debug)]
pub struct Mailer;

#[corriere::bean(type = "mailer", close = "hang_up")]
impl Mailer {
    /// Makes one.
    pub const fn new() -> Self {
        Self
    }

    /// Ends it.
    pub fn hang_up(&self) -> Result<u8, std::io::Error> {
        Ok(1)
    }
}

#[jms_listener(queue = "a")]
async fn on_order(_order: String, #[bean("pool")] pool: Bean<Pool>, other: Renamed) {
    drop((pool, other));
}

#[jms_listener(queue = "b")]
fn blocking(#[bean("pool")] pool: Bean<Pool>, converter: Bean<dyn MessageConverter>) {
    drop((pool, converter));
}

fn main() {
    let [order, first, second] = on_order::DEF.beans else { panic!() };
    assert_eq!((order.name, order.bean, order.requests.len()), (Some("order"), None, 0));
    assert_eq!((first.name, first.bean, first.requests.len()), (Some("pool"), Some("pool"), 1));
    assert_eq!((second.name, second.bean, second.requests.len()), (Some("other"), None, 1));
    assert_eq!(blocking::DEF.bean_requests().count(), 2);
}

//! A broker for somebody else to measure.

use std::sync::Arc;

use corriere::openwire::acceptor::{Acceptor, AcceptorOptions};
use serde_json::json;

use super::broker::Running;
use crate::arguments::Asked;
use crate::failure::Failure;

/// Starts a broker on a journal, says where it listens, and goes on until it is killed.
pub(super) async fn serve(asked: &Asked) -> Result<(), Failure> {
    let running = Running::start(&asked.directory).await?;
    let options =
        AcceptorOptions { broker_name: running.broker().name().into(), ..AcceptorOptions::default() };
    let acceptor = Acceptor::bind("tcp://127.0.0.1:0", Arc::new(running.broker().clone()), options).await?;
    println!("{}", json!({ "peer": "corriere", "url": acceptor.url() }));
    std::future::pending().await
}

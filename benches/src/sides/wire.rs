//! A broker over OpenWire, measured by ActiveMQ's own client.

use std::path::Path;

use serde_json::Value;

use super::started::Started;
use super::{Line, activemq, line_of, measuring};
use crate::failure::Failure;
use crate::measure::What;

/// Starts our broker in a process of its own and measures it as ActiveMQ is.
pub(super) fn measure(scenario: &str, directory: &Path, seconds: f64, round: u32) -> Result<Line, Failure> {
    let mut broker = Started::new(&mut measuring(What::Serve, directory, seconds)?)?;
    let serving = broker.line()?;
    let url = serving.get("url").and_then(Value::as_str);
    let url = url.ok_or_else(|| Failure::NoField { command: What::Serve.name(), field: "url" })?;
    let mut client = activemq(scenario, directory, seconds, round);
    line_of(client.args(["--url", url, "--peer", "corriere"]))
}

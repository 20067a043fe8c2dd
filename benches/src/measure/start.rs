//! The start of an application with many listeners and beans.

use std::fmt::Write;
use std::time::Instant;

use corriere::config::Document;
use corriere::listener::{ListenerDef, ListenerDestination};
use corriere::prelude::*;
use serde_json::json;

use crate::failure::Failure;
use crate::sides::Line;

const LISTENERS: usize = 200;
const BEANS: usize = 50;

#[jms_listener(queue = "q")]
async fn on_text(_text: String, _root: Bean<Root>) {}

#[derive(Debug)]
struct Root;

#[corriere::bean(type = "root")]
impl Root {
    fn new() -> Self {
        Self
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartSettings {
    name: String,
    size: u32,
}

/// A bean with a configuration of its own that needs another one.
#[derive(Debug)]
struct Part {
    _number: u32,
    _size: u32,
}

#[corriere::bean(type = "part")]
impl Part {
    fn new(settings: PartSettings, _root: Bean<Root>) -> Result<Self, std::num::ParseIntError> {
        let PartSettings { name, size } = settings;
        Ok(Self { _number: name.parse()?, _size: size })
    }
}

/// Starts it, its configuration read and its broker in memory, and stops it.
pub(super) async fn measure() -> Result<Line, Failure> {
    let mut text = "[broker]\nname = \"start\"\n\n[beans.root]\ntype = \"root\"\n".to_owned();
    for number in 1..BEANS {
        _ = write!(text, "\n[beans.part_{number}]\ntype = \"part\"\nname = \"{number}\"\nsize = {BEANS}\n");
    }
    let mut listeners = Vec::new();
    for number in 0..LISTENERS {
        let id: &str = format!("listener_{number}").leak();
        let destination = ListenerDestination::Queue(format!("queue.{number}").leak());
        listeners.push(ListenerDef { id, destination, ..on_text::DEF });
        _ = write!(text, "\n[listeners.{id}]\nconcurrency = \"1-4\"\nprefetch = 5\n");
    }

    let begin = Instant::now();
    let document = Document::from_text("config.toml", &text).map_err(Error::from)?;
    let application = Application::from_document(document).listeners(listeners);
    let running = application.start().await?;
    let elapsed = begin.elapsed();
    running.stop().await;

    let mut line = Line::new();
    line.insert("peer".to_owned(), json!("corriere"));
    line.insert("scenario".to_owned(), json!(format!("start-{LISTENERS}-listeners-{BEANS}-beans")));
    line.insert("start_s".to_owned(), json!(elapsed.as_secs_f64()));
    Ok(line)
}

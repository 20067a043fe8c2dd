//! A broker for programs elsewhere: it listens for clients that speak OpenWire, such as Java's with ActiveMQ's library, until
//! Ctrl-C.

use std::path::PathBuf;

use clap::Parser;
use corriere::prelude::*;

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/broker/config.toml");

/// A broker that listens for clients of ActiveMQ.
#[derive(Debug, Parser)]
#[command(name = "broker")]
struct Arguments {
    /// Where to listen, once or more often; port 0 takes a free one. By default what the configuration says,
    /// `tcp://127.0.0.1:61616`.
    #[arg(long, value_name = "URL")]
    listen: Vec<String>,
    /// Where messages are kept over the end of the process. By default they are in memory.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

#[corriere::main]
async fn main() -> Result<(), Error> {
    let arguments = Arguments::parse();
    let mut broker = Application::from_config(CONFIG)?;
    if !arguments.listen.is_empty() {
        broker = broker.set("broker.listen", arguments.listen);
    }
    if let Some(directory) = arguments.data {
        broker = broker.set("broker.data_directory", directory.to_string_lossy().into_owned());
    }
    let app = broker.start().await?;
    for url in app.listen_urls() {
        println!("listening on {url}");
    }
    app.run_until_shutdown().await
}

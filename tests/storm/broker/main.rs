//! The broker of `tests/storm` as a process of its own: `storm_broker DIRECTORY`. It says where it listens, then answers what
//! it is asked on standard input, a line each: `standing` with what it says of its destinations, `stop` with an orderly end.
//! Without anybody to ask it ends at once, so that it outlives no test.

#[path = "../standing.rs"]
mod standing;

use std::io::stdin;

use corriere::Application;
use tokio::sync::mpsc;

#[corriere::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("expected a directory")?;
    let app = Application::builder()
        .set("broker.name", "storm")
        .set("broker.listen", vec!["tcp://127.0.0.1:0"])
        .set("broker.data_directory", directory)
        .set("broker.memory_limit", "1MiB")
        .set("broker.redelivery.maximum_redeliveries", -1)
        .set("broker.redelivery.initial_delay", "5ms")
        .set("broker.redelivery.delay", "5ms")
        .set("broker.store.max_file_length", "1MiB")
        .set("broker.store.checkpoint_after", "4MiB")
        .set("broker.store.cleanup_interval", "1s")
        .listeners([])
        .start()
        .await?;
    let broker = app.broker()?.clone();
    println!("{}", app.listen_urls().concat());
    let mut asked = questions();
    let failed = broker.failed();
    tokio::pin!(failed);
    loop {
        let question = tokio::select! {
            question = asked.recv() => question,
            error = &mut failed => return Err(error.into()),
        };
        match question.as_deref() {
            Some("standing") => println!("{}", serde_json::to_string(&standing::of(&broker))?),
            Some("stop") => {
                app.stop().await;
                return Ok(());
            }
            _ => std::process::exit(1),
        }
    }
}

/// The lines of standard input.
fn questions() -> mpsc::UnboundedReceiver<String> {
    let (asked, questions) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in stdin().lines().map_while(Result::ok) {
            if asked.send(line).is_err() {
                return;
            }
        }
    });
    questions
}

//! The smallest whole program: a listener, a message for it, and a broker within. Ctrl-C ends it.
use corriere::prelude::*;

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/quickstart/config.toml");

#[derive(Serialize, Deserialize)]
struct Greeting(String);

#[jms_listener(queue = "greetings")]
async fn on_greeting(greeting: Greeting) {
    println!("Hello, {}!", greeting.0);
}

#[corriere::main]
async fn main() -> Result<(), Error> {
    let app = Application::from_config(CONFIG)?.start().await?;
    let template: JmsTemplate = app.bean("greetings")?;
    template.convert_and_send(&Greeting("world".to_owned())).await?;
    app.run_until_shutdown().await
}

//! The smallest whole program: a listener, a message for it, and a broker within. Ctrl-C ends it.
use corriere::prelude::*;

#[derive(Serialize, Deserialize)]
struct Greeting {
    name: String,
}

#[jms_listener(queue = "greetings")]
async fn on_greeting(greeting: Greeting) {
    println!("Hello, {}!", greeting.name);
}

#[corriere::main]
async fn main() -> Result<(), Error> {
    let app = Application::from_config(concat!(env!("CARGO_MANIFEST_DIR"), "/quickstart/config.toml"))?
        .start()
        .await?;
    let template: JmsTemplate = app.bean("greetings")?;
    template.convert_and_send(&Greeting { name: "world".to_owned() }).await?;
    app.run_until_shutdown().await
}

//! Start and stop.

use std::process::ExitCode;

use corriere::prelude::*;
use corriere::templates::MessageConverter;

use crate::{application, refused};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    id: u64,
    email: String,
}

/// The tables of the guide's configuration, all that this version reads.
const CONFIG: &str = r#"
    [broker]
    name = "life"

    [connection_factories.main]
    url = "vm://life?jms.redeliveryPolicy.maximumRedeliveries=6"

    [destinations]
    orders = { queue = "shop.orders" }

    [message_converters.json]
    type = "json"

    [templates.order_template]
    connection_factory = "main"
    default_destination = "orders"
    receive_timeout = "5s"
    message_converter = "json"

    [listener_containers.default]
    connection_factory = "main"
    concurrency = "1-4"
    shutdown_timeout = "20s"
"#;

/// The guide's program, up to where it would wait for a signal.
#[tokio::test]
async fn a_file_is_all_that_an_application_needs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(&path, CONFIG).unwrap();

    let app = Application::from_config(&path).unwrap().listeners([]).start().await.unwrap();
    let template: JmsTemplate = app.bean("order_template").unwrap();
    template.convert_and_send(&Order { id: 7, email: "a@b".to_owned() }).await.unwrap();
    let order: Option<Order> = template.receive_and_convert().await.unwrap();
    assert_eq!(order, Some(Order { id: 7, email: "a@b".to_owned() }));
    assert!(app.stop().await.is_clean());
}

#[tokio::test]
async fn a_stop_frees_the_brokers_name() {
    let text = "[broker]\nname = \"again\"";
    for _ in 0..2 {
        application(text).listeners([]).start().await.unwrap().stop().await;
    }
    let running = application(text).listeners([]).start().await.unwrap();
    let told = refused(application(text).listeners([])).await;
    assert_eq!(
        told,
        ["the embedded broker did not start: a broker named `again` runs in this process already"]
    );
    drop(running);
    application(text).listeners([]).start().await.unwrap();
}

#[tokio::test]
async fn a_start_that_fails_leaves_no_broker_behind() {
    let text = "[broker]\nname = \"failing\"";
    let told = refused(application(text).listeners([]).set("application.expect", vec!["nobody"])).await;
    assert!(
        told[0].starts_with("`application.expect`: the listener `nobody` is not in this program"),
        "{told:?}"
    );
    application(text).listeners([]).start().await.unwrap();
}

#[tokio::test]
async fn templates_and_connection_factories_are_beans() {
    let app = application(CONFIG)
        .set("broker.name", "beans")
        .set("connection_factories.main.url", "vm://beans")
        .listeners([])
        .start()
        .await
        .unwrap();
    let template: JmsTemplate = app.bean("order_template").unwrap();
    let factory: corriere::core::ConnectionFactory = app.bean("main").unwrap();
    assert!(template.connection_factory().is_same(&factory));
    assert!(app.bean_of::<JmsTemplate>().unwrap().connection_factory().is_same(&factory));
    let converter: Bean<dyn MessageConverter> = app.bean("json").unwrap();
    assert_eq!(converter.decode::<u8>(&Message::text("7")).unwrap(), 7);
    assert_eq!(
        app.bean::<JmsTemplate>("order_templte").unwrap_err().to_string(),
        "there is no bean named `order_templte`, did you mean `order_template`?; there are `main: \
         corriere_core::client::factory::ConnectionFactory`, `json: dyn corriere_templates::converter::MessageConverter`, \
         `order_template: corriere_templates::template::JmsTemplate`"
    );
}

#[tokio::test]
async fn a_template_takes_the_names_of_the_application() {
    let app = application(CONFIG)
        .set("broker.name", "names")
        .set("connection_factories.main.url", "vm://names")
        .listeners([])
        .start()
        .await
        .unwrap();
    let template: JmsTemplate = app.bean("order_template").unwrap();
    template.convert_and_send_to("orders", "by name").await.unwrap();
    let taken: Option<String> = template.receive_and_convert_from("queue://shop.orders").await.unwrap();
    assert_eq!(taken.as_deref(), Some("by name"));
    let error = template.convert_and_send_to("order", "nowhere").await.unwrap_err().to_string();
    assert!(error.contains("`[destinations]` has no key `order`, did you mean `orders`?"), "{error}");
}

/// `main` shows its error in the form for debugging, which has to be a text for people.
#[test]
fn an_error_of_main_is_readable() {
    #[corriere::main]
    async fn main() -> Result<(), Error> {
        Application::from_config("no/such/config.toml")?.start().await?.run_until_shutdown().await
    }

    assert_eq!(main(), ExitCode::FAILURE);
    let shown = format!("{:?}", Application::from_config("no/such/config.toml").unwrap_err());
    assert!(shown.contains("/no/such/config.toml` cannot be read: "), "{shown}");
}

/// `?` takes all that a `main` of one's own may meet, without large results.
#[test]
fn an_error_of_main_takes_in_all_others() {
    fn resolves(name: &str) -> Result<corriere::core::Destination, Error> {
        Ok(corriere::config::Destinations::of_table(Vec::new()).resolve(name)?)
    }
    fn marks(message: &mut Message) -> Result<(), Error> {
        message.set_property("not a name", 1)?;
        Ok(())
    }
    fn names() -> Result<corriere::core::Destination, Error> {
        Ok(corriere::core::Destination::queue("")?)
    }
    fn bounds(text: &str) -> Result<corriere::listener::Concurrency, Error> {
        Ok(text.parse()?)
    }
    fn mode(text: &str) -> Result<corriere::listener::Acknowledge, Error> {
        Ok(text.parse()?)
    }
    assert!(matches!(resolves("a").unwrap_err(), Error::Destination(_)));
    assert!(matches!(marks(&mut Message::text("")).unwrap_err(), Error::Client(_)));
    assert!(names().is_err() && bounds("0").is_err() && mode("x").is_err());
    // From here on clippy warns of every function that returns one.
    assert!(size_of::<Error>() < 128, "{} bytes", size_of::<Error>());
    assert!(size_of::<corriere::config::ConfigError>() < 128);
}

#[test]
fn main_may_return_anything_and_use_everything_of_the_runtime() {
    #[corriere::main]
    async fn main() -> Result<ExitCode, std::num::ParseIntError> {
        let code: u8 = tokio::spawn(async { "7".parse() }).await.unwrap()?;
        Ok(code.into())
    }

    assert_eq!(main(), ExitCode::from(7));
}

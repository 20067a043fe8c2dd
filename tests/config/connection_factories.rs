//! What is said of a connection factory, in its URL or beside it.

use corriere::core::{ConnectionFactory, Destination};

use crate::errors;

const MAIN: &str = "[connection_factories.main]\n";

#[tokio::test]
async fn the_keys_beside_a_url_are_its_options() {
    let app = corriere::Application::builder()
        .set("broker.name", "factory-keys")
        .set("connection_factories.main.url", "vm://factory-keys?jms.sendTimeout=100")
        .set("connection_factories.main.client_id", "counter 1 & 2 = 100%")
        .set("connection_factories.main.prefetch.queue", 7)
        .set("connection_factories.main.prefetch.durable", 8)
        .set("connection_factories.main.prefetch.browser", 9)
        .set("connection_factories.main.prefetch.bounded_extension", false)
        .set("connection_factories.main.optimize_acknowledge", true)
        .listeners([])
        .start()
        .await
        .unwrap();
    let factory: ConnectionFactory = app.bean("main").unwrap();
    assert_eq!(factory.prefetch(&Destination::queue("q").unwrap()), 7);
    assert_eq!(factory.prefetch(&Destination::topic("t").unwrap()), 1_000);
    assert_eq!((factory.durable_prefetch(), factory.browser_prefetch()), (8, 9));
    assert!(!factory.has_bounded_extension() && factory.optimizes_acknowledge());
    let _first = factory.create_connection().await.unwrap();
    let second = factory.create_connection().await.unwrap_err().to_string();
    assert!(second.contains("client id `counter 1 & 2 = 100%` is in use"), "{second}");
    app.stop().await;
}

#[test]
fn what_is_said_twice_is_refused_with_both_places() {
    for (option, key, said) in [
        ("jms.userName=a", "user", "user = \"a\""),
        ("jms.password=a", "password", "password = \"geheim\""),
        ("jms.clientID=a", "client_id", "client_id = \"a\""),
        ("jms.sendTimeout=1", "send_timeout", "send_timeout = \"1s\""),
        ("jms.prefetchPolicy.queuePrefetch=1", "prefetch.queue", "prefetch.queue = 1"),
        ("jms.prefetchPolicy.topicPrefetch=1", "prefetch.topic", "prefetch.topic = 1"),
        ("jms.prefetchPolicy.durableTopicPrefetch=1", "prefetch.durable", "prefetch.durable = 1"),
        ("jms.prefetchPolicy.queueBrowserPrefetch=1", "prefetch.browser", "prefetch.browser = 1"),
        ("jms.prefetchPolicy.all=1", "prefetch.queue", "prefetch.queue = 1"),
        ("jms.prefetchPolicy.all=1", "prefetch.browser", "prefetch.browser = 1"),
        (
            "jms.prefetchPolicy.boundedExtension=true",
            "prefetch.bounded_extension",
            "prefetch.bounded_extension = true",
        ),
        ("jms.optimizeAcknowledge=true", "optimize_acknowledge", "optimize_acknowledge = false"),
    ] {
        let option_name = option.split('=').next().unwrap();
        assert_eq!(
            errors(&format!(
                "{MAIN}url = \"vm://local?jms.warnAboutUnstartedConnectionTimeout=1&{option}\"\n{said}"
            )),
            [format!(
                "`connection_factories.main.{key}` (config.toml:3:{}) is a second value beside the option \
                 `{option_name}` of `connection_factories.main.url` (config.toml:2:7); expected one of the two",
                key.len() + 4
            )]
        );
    }
}

#[test]
fn values_that_no_option_could_have_are_refused_at_their_key() {
    for (said, expected) in [
        (
            "user = \"\"",
            "`connection_factories.main.user` (config.toml:3:8) is \"\"; expected a text that is not empty",
        ),
        (
            "prefetch = { queue = 32768 }",
            "`connection_factories.main.prefetch.queue` (config.toml:3:22) is `32768`; expected a whole number from 0 to 32767",
        ),
        (
            "send_timeout = \"0s\"",
            "`connection_factories.main.send_timeout` (config.toml:3:16) is \"0s\"; expected a duration above 0 such as \
             \"20s\", \"500ms\", \"2m\" or \"1h30m\"",
        ),
    ] {
        assert_eq!(errors(&format!("{MAIN}url = \"vm://local\"\n{said}")), [expected]);
    }
}

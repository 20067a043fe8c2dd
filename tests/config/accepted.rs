//! What is right is read as it is meant.

use std::path::Path;
use std::time::Duration;

use corriere::config::{DeadLetterKind, Origin, Preset};
use corriere::core::{
    DeliveryMode, Destination, DestinationPattern, Priority, RedeliveryOverrides, RedeliveryPolicy,
};
use corriere::listener::{Acknowledge, Concurrency};
use corriere::templates::ReceiveTimeout;

use crate::read;

#[test]
fn every_table_and_key_is_read() {
    let configuration = read(
        r#"
        [broker]
        name = "shop"
        listen = ["tcp://127.0.0.1:61616", "tcp://127.0.0.1:${env:PORT:-0}"]
        preset = "activemq"
        memory_limit = "64MiB"
        send_deadline = "30s"
        priorities = true
        dead_letters = "shared"
        dead_letter_non_persistent = true

        [broker.policies.orders]
        queue = "shop.orders.>"
        prefetch = 5
        dead_letters = "discard"
        dead_letter_non_persistent = false
        redelivery = { maximum_redeliveries = -1, jitter_percent = 0 }

        [broker.policies.prices]
        topic = "shop.*.prices"

        [broker.redelivery]
        maximum_redeliveries = -1
        initial_delay = "200ms"
        delay = "1s"
        back_off = 2
        maximum_delay = "1m"
        jitter_percent = 15
        non_blocking = true

        [connection_factories.main]
        url = "vm://shop?jms.redeliveryPolicy.maximumRedeliveries=6"
        user = "clerk"
        password = "geheim"
        client_id = "counter"
        send_timeout = "5s"
        prefetch = { queue = 7, topic = 8, bounded_extension = false }

        [destinations]
        orders = { queue = "shop.orders" }
        prices = { topic = "shop.prices" }

        [message_converters.json]
        type = "json"

        [templates.order_template]
        connection_factory = "main"
        default_destination = "orders"
        receive_timeout = "60s"
        message_converter = "json"
        delivery_mode = "non_persistent"
        priority = 7
        time_to_live = "1h"
        transacted = true
        sessions = 4

        [listener_containers.default]
        connection_factory = "main"
        concurrency = "1-4"
        enabled = true
        shutdown_timeout = "20s"
        idle_timeout = "1m"
        recovery_interval = "1s"
        maximum_recovery_interval = "2m"
        prefetch = 5
        message_converter = "json"
        ack = "client"
        transacted = false

        [listeners.on_order]
        enabled = false
        container = "default"
        queue = "orders"
        ack = "transacted"
        transacted = true
        concurrency = 16
        prefetch = 1
        send_to = "queue://elsewhere"
        message_converter = "json"

        [beans.mailer]
        type = "smtp_mailer"
        url = "smtp://127.0.0.1:2525"

        [application]
        expect = ["on_order"]
        "#,
    )
    .unwrap();

    let broker = configuration.broker.unwrap();
    assert_eq!(broker.name, "shop");
    assert_eq!(broker.listen.unwrap().value, ["tcp://127.0.0.1:61616", "tcp://127.0.0.1:0"]);
    assert_eq!(broker.preset, Some(Preset::ActiveMq));
    assert_eq!(broker.memory_limit, Some(64 * 1024 * 1024));
    assert_eq!(broker.send_deadline, Some(Duration::from_secs(30)));
    assert_eq!(broker.priorities, Some(true));
    assert_eq!(broker.dead_letters, Some(DeadLetterKind::Shared));
    assert_eq!(broker.dead_letter_non_persistent, Some(true));
    assert_eq!(
        broker.redelivery,
        RedeliveryPolicy {
            maximum_redeliveries: None,
            initial_delay: Duration::from_millis(200),
            delay: Duration::from_secs(1),
            back_off: Some(2.0),
            maximum_delay: Some(Duration::from_secs(60)),
            jitter_percent: 15,
            non_blocking: true,
        }
    );

    let [orders, prices] = &broker.policies[..] else { panic!("{:?}", broker.policies) };
    assert_eq!(orders.pattern, DestinationPattern::queue("shop.orders.>").unwrap());
    assert_eq!((orders.prefetch, orders.dead_letters), (Some(5), Some(DeadLetterKind::Discard)));
    assert_eq!(orders.dead_letter_non_persistent, Some(false));
    assert_eq!(
        orders.redelivery,
        RedeliveryOverrides {
            maximum_redeliveries: Some(None),
            jitter_percent: Some(0),
            ..RedeliveryOverrides::default()
        }
    );
    assert_eq!(prices.pattern, DestinationPattern::topic("shop.*.prices").unwrap());
    assert_eq!((prices.prefetch, &prices.redelivery), (None, &RedeliveryOverrides::default()));

    let main = configuration.connection_factories.get("main").unwrap();
    assert_eq!(main.user.as_ref().unwrap().value, "clerk");
    assert_eq!(main.password.as_ref().unwrap().value, "geheim");
    assert_eq!(main.client_id.as_ref().unwrap().value, "counter");
    assert_eq!(main.send_timeout, Some(Duration::from_secs(5)));
    assert_eq!(
        (main.queue_prefetch, main.topic_prefetch, main.bounded_extension),
        (Some(7), Some(8), Some(false))
    );
    assert!(!format!("{main:?}").contains("geheim"));

    let destinations = configuration.destinations;
    assert_eq!(destinations.resolve("orders").unwrap(), Destination::queue("shop.orders").unwrap());
    assert_eq!(destinations.resolve("prices").unwrap(), Destination::topic("shop.prices").unwrap());

    let template = configuration.templates.get("order_template").unwrap();
    assert_eq!(template.receive_timeout, Some(ReceiveTimeout::After(Duration::from_secs(60))));
    assert_eq!(template.delivery_mode, Some(DeliveryMode::NonPersistent));
    assert_eq!(template.priority, Some(Priority::new(7).unwrap()));
    assert_eq!(template.time_to_live, Some(Duration::from_secs(3_600)));
    assert_eq!((template.transacted, template.sessions), (Some(true), Some(4)));
    let factory = template.connection_factory.as_ref().unwrap();
    assert_eq!(factory.value, "main");
    assert_eq!(factory.place.key(), "templates.order_template.connection_factory");
    assert_eq!(
        *factory.place.origin(),
        Origin::File { name: "config.toml".to_owned(), position: Some((47, 30)) }
    );

    let container = configuration.listener_containers.get("default").unwrap();
    assert_eq!(container.concurrency, Some(Concurrency::new(1, 4)));
    assert_eq!(container.shutdown_timeout, Some(Duration::from_secs(20)));
    assert_eq!(container.prefetch, Some(5));
    assert_eq!(container.idle_timeout, Some(Duration::from_secs(60)));
    assert_eq!(container.recovery_interval, Some(Duration::from_secs(1)));
    assert_eq!(container.maximum_recovery_interval, Some(Duration::from_secs(120)));
    assert!(container.enabled.as_ref().unwrap().value && !container.transacted.as_ref().unwrap().value);
    assert_eq!(container.acknowledge.as_ref().unwrap().value, Acknowledge::Client);

    let listener = configuration.listeners.get("on_order").unwrap();
    assert_eq!(listener.acknowledge.as_ref().unwrap().value, Acknowledge::Transacted);
    assert!(!listener.enabled.as_ref().unwrap().value && listener.transacted.as_ref().unwrap().value);
    assert_eq!(listener.concurrency.as_ref().unwrap().value, Concurrency::new(1, 16));
    assert_eq!(listener.prefetch, Some(1));
    assert_eq!(configuration.beans.get("mailer").unwrap().bean_type.value, "smtp_mailer");
    assert_eq!(configuration.application.expect.unwrap().value, ["on_order"]);
}

#[test]
fn where_and_how_messages_are_kept() {
    let store = |text: &str| read(text).unwrap().broker.unwrap().store;
    assert_eq!(store("[broker]").data_directory, None);

    let given = store(
        r#"
        [broker]
        data_directory = "data"
        sync_on_write = false

        [broker.store]
        max_file_length = "16KiB"
        store_limit = "32KiB"
        ack_sync = true
        checkpoint_after = "1MiB"
        cleanup_interval = "5s"
        archive_data_logs = true
        directory_archive = "old"
        "#,
    );
    let data_directory = given.data_directory.unwrap();
    assert_eq!(data_directory.value, Path::new("data"));
    assert_eq!(data_directory.place.to_string(), "`broker.data_directory` (config.toml:3:26)");
    assert_eq!(given.sync_on_write, Some(false));
    assert_eq!(given.max_file_length, Some(16 << 10));
    assert_eq!(given.store_limit, Some(32 << 10));
    assert_eq!(given.ack_sync, Some(true));
    assert_eq!(given.checkpoint_after, Some(1 << 20));
    assert_eq!(given.cleanup_interval, Some(Duration::from_secs(5)));
    assert_eq!(given.archive_data_logs, Some(true));
    assert_eq!(given.directory_archive.as_deref(), Some(Path::new("old")));
}

/// All twelve properties, with their defaults as its page writes them.
#[test]
fn the_properties_of_activemqs_first_journal_are_accepted() {
    let configuration = read(
        r#"
        [broker.store]
        directory = "activemq-data"
        use_nio = true
        sync_on_write = false
        max_file_length = "32mb"
        persistent_index = true
        max_checkpoint_message_add_size = "4kb"
        cleanup_interval = 30000
        index_bin_size = 1024
        index_key_size = 96
        index_page_size = "16kb"
        directory_archive = "archive"
        archive_data_logs = false
        "#,
    )
    .unwrap();
    let store = configuration.broker.unwrap().store;
    assert_eq!(store.data_directory.unwrap().value, Path::new("activemq-data"));
    assert_eq!(store.sync_on_write, Some(false));
    assert_eq!(store.max_file_length, Some(32 << 20));
    assert_eq!(store.cleanup_interval, Some(Duration::from_secs(30)));

    let without_effect: Vec<_> = configuration.without_effect.iter().map(ToString::to_string).collect();
    assert_eq!(without_effect.len(), 6);
    assert_eq!(
        without_effect[0],
        "`broker.store.use_nio` (config.toml:4:9) has no effect: every read and write says where in the file it is, \
         always"
    );
    assert!(
        without_effect[5].starts_with("`broker.store.index_page_size` (config.toml:12:9) has no effect: ")
    );
}

#[test]
fn nothing_at_all_is_a_configuration() {
    let configuration = read("").unwrap();
    assert!(configuration.broker.is_none());
    assert!(configuration.destinations.table().is_none());
    assert_eq!(configuration.templates.names().count(), 0);
}

#[test]
fn an_empty_broker_table_asks_for_a_broker_with_the_defaults() {
    let broker = read("[broker]").unwrap().broker.unwrap();
    assert_eq!(broker.name, "local");
    assert_eq!(broker.redelivery, RedeliveryPolicy::default());
}

#[test]
fn beans_keep_the_order_of_the_file() {
    let text: String =
        ["zebra", "apple", "mango"].map(|name| format!("[beans.{name}]\ntype = \"x\"\n")).concat();
    assert_eq!(read(&text).unwrap().beans.names().collect::<Vec<_>>(), ["zebra", "apple", "mango"]);
}

/// Spring's meaning of a template's receive timeout, and text beside it.
/// C-16.
#[test]
fn a_receive_timeout_is_a_text_or_milliseconds() {
    let cases = [
        ("60000", ReceiveTimeout::After(Duration::from_secs(60))),
        ("\"60000\"", ReceiveTimeout::After(Duration::from_secs(60))),
        ("\"500ms\"", ReceiveTimeout::After(Duration::from_millis(500))),
        ("5", ReceiveTimeout::After(Duration::from_millis(5))),
        ("0", ReceiveTimeout::Indefinite),
        ("\"0s\"", ReceiveTimeout::Indefinite),
        ("9223372036854775807", ReceiveTimeout::After(Duration::from_millis(i64::MAX as u64))),
        ("-1", ReceiveTimeout::NoWait),
        ("\"-1\"", ReceiveTimeout::NoWait),
    ];
    for (written, expected) in cases {
        let read = read(&format!("[templates.t]\nreceive_timeout = {written}")).unwrap();
        assert_eq!(read.templates.get("t").unwrap().receive_timeout, Some(expected), "{written}");
    }
}

#[test]
fn a_single_concurrency_is_the_upper_bound_in_the_file_as_in_code() {
    for written in ["5", "\"5\"", "\"1-5\""] {
        let read = read(&format!("[listeners.on_order]\nconcurrency = {written}")).unwrap();
        let concurrency = read.listeners.get("on_order").unwrap().concurrency.as_ref().unwrap().value;
        assert_eq!(concurrency, Concurrency::new(1, 5), "{written}");
        assert_eq!("5".parse(), Ok(concurrency));
    }
}

#[test]
fn names_may_have_dots_and_case() {
    let read = read("[destinations]\n\"Orders.IN\" = { queue = \"shop.Orders\" }").unwrap();
    assert_eq!(read.destinations.queue("Orders.IN").unwrap().name(), "shop.Orders");
}

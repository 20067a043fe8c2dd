//! What is wrong is refused, with the key, its line, the value, and what is allowed.

use corriere::config::{ConfigError, Document};

use crate::{errors, read};

/// The one error of a text.
fn refused(text: &str, expected: &str) {
    assert_eq!(errors(text), [expected], "for {text}");
}

#[test]
fn a_name_that_is_not_known_is_refused_with_the_nearest() {
    refused(
        "[brokr]\nname = \"local\"",
        "`brokr` (config.toml, line 1) is not known; did you mean `broker`?; known here: `application`, `beans`, `broker`, \
         `connection_factories`, `destinations`, `listener_containers`, `listeners`, `message_converters`, `templates`",
    );
    refused(
        "[connection_factories.main]\nurl = \"vm://local\"\nurls = \"\"",
        "`connection_factories.main.urls` (config.toml, line 3) is not known; did you mean `url`?; known here: `url`, `user`, \
         `password`, `client_id`, `send_timeout`, `prefetch`",
    );
    refused(
        "[listeners.on_order]\nconcurency = \"2\"",
        "`listeners.on_order.concurency` (config.toml, line 2) is not known; did you mean `concurrency`?; known here: \
         `enabled`, `container`, `queue`, `topic`, `ack`, `transacted`, `concurrency`, `prefetch`, `send_to`, \
         `message_converter`",
    );
    refused(
        "[listeners.on_order]\nacknowledge = \"auto\"",
        "`listeners.on_order.acknowledge` (config.toml, line 2) is not known; did you mean `ack`?; known here: \
         `enabled`, `container`, `queue`, `topic`, `ack`, `transacted`, `concurrency`, `prefetch`, `send_to`, \
         `message_converter`",
    );
    refused(
        "[broker.redelivery]\nmax_redeliveries = 6",
        "`broker.redelivery.max_redeliveries` (config.toml, line 2) is not known; did you mean `maximum_redeliveries`?; \
         known here: `maximum_redeliveries`, `initial_delay`, `delay`, `back_off`, `maximum_delay`, `non_blocking`",
    );
}

#[test]
fn a_concurrency_that_makes_no_sense_is_refused() {
    for written in
        ["\"5-2\"", "0", "\"0\"", "-1", "\"5-\"", "\"a-b\"", "\" 2 - 4 \"", "\"\"", "1.5", "true", "[2, 8]"]
    {
        let found = errors(&format!("[listeners.on_order]\nconcurrency = {written}"));
        assert_eq!(found.len(), 1, "{written}: {found:?}");
        assert!(
            found[0].starts_with("`listeners.on_order.concurrency` (config.toml, line 2) is ")
                && found[0].ends_with(
                    "; expected a range of workers such as \"2-8\", or a single upper bound such as \"8\", from 1 up"
                ),
            "{written}: {found:?}"
        );
    }
}

#[test]
fn an_acknowledge_mode_that_does_not_exist_is_refused() {
    for (written, shown) in [("\"cleint\"", "\"cleint\""), ("3", "`3`"), ("\"AUTO\"", "\"AUTO\"")] {
        refused(
            &format!("[listener_containers.default]\nack = {written}"),
            &format!(
                "`listener_containers.default.ack` (config.toml, line 2) is {shown}; expected \"auto\", \"client\", \
                 \"transacted\" or \"manual\""
            ),
        );
    }
}

#[test]
fn a_duration_without_a_unit_is_refused() {
    for (written, shown) in [
        ("20", "`20`"),
        ("\"20\"", "\"20\""),
        ("\"-5s\"", "\"-5s\""),
        ("\"5 parsecs\"", "\"5 parsecs\""),
        ("\"\"", "\"\""),
    ] {
        refused(
            &format!("[listener_containers.default]\n\nshutdown_timeout = {written}"),
            &format!(
                "`listener_containers.default.shutdown_timeout` (config.toml, line 3) is {shown}; expected a duration such \
                 as \"20s\", \"500ms\", \"2m\" or \"1h30m\""
            ),
        );
    }
}

#[test]
fn a_receive_timeout_that_is_neither_time_nor_sign_is_refused() {
    for (written, shown) in
        [("-2", "`-2`"), ("\"-5s\"", "\"-5s\""), ("1.5", "`1.5`"), ("\"soon\"", "\"soon\"")]
    {
        refused(
            &format!("[templates.t]\nreceive_timeout = {written}"),
            &format!(
                "`templates.t.receive_timeout` (config.toml, line 2) is {shown}; expected a duration such as \"60s\", a \
                 number of milliseconds such as 60000, 0 to wait for ever, or -1 not to wait"
            ),
        );
    }
}

#[test]
fn a_preset_that_does_not_exist_is_refused_with_the_nearest() {
    refused(
        "[broker]\npreset = \"activemp\"",
        "`broker.preset` (config.toml, line 2): there is no preset `activemp`; did you mean `activemq`?; there is: `activemq`",
    );
    refused(
        "[broker]\npreset = 5",
        "`broker.preset` (config.toml, line 2) is `5`; expected the name of a preset, \"activemq\"",
    );
}

#[test]
fn addresses_to_listen_on_are_a_list_of_texts() {
    for (written, shown) in
        [("\"tcp://127.0.0.1:0\"", "\"tcp://127.0.0.1:0\""), ("[61616]", "a list"), ("61616", "`61616`")]
    {
        refused(
            &format!("[broker]\nlisten = {written}"),
            &format!(
                "`broker.listen` (config.toml, line 2) is {shown}; expected a list of addresses such as \
                 [\"tcp://127.0.0.1:61616\"]"
            ),
        );
    }
}

#[test]
fn a_missing_key_is_named() {
    refused(
        "[connection_factories.main]",
        "`connection_factories.main.url` (config.toml, line 1) is missing; expected the URL of a broker, such as \
         \"vm://local\"",
    );
    refused(
        "[beans.mailer]\nurl = \"x\"",
        "`beans.mailer.type` (config.toml, line 1) is missing; expected the type name of a `#[corriere::bean]`",
    );
}

#[test]
fn a_destination_is_a_queue_or_a_topic() {
    refused(
        "[destinations]\norders = { queue = \"a\", topic = \"b\" }",
        "`destinations.orders` (config.toml, line 2) is a queue and a topic at once; expected one of them",
    );
    refused(
        "[destinations]\norders = {}",
        "`destinations.orders` (config.toml, line 2) is without a physical name; expected { queue = \"…\" } or { topic = \
         \"…\" }",
    );
    refused(
        "[destinations]\norders = \"shop.orders\"",
        "`destinations.orders` (config.toml, line 2) is \"shop.orders\"; expected a table",
    );
    let found = errors("[destinations]\norders = { queue = \"\" }");
    assert!(found[0].starts_with("`destinations.orders.queue` (config.toml, line 2): "), "{found:?}");
}

#[test]
fn values_of_the_wrong_kind_are_refused() {
    let cases = [
        ("broker = 5", "`broker` (config.toml, line 1) is `5`; expected a table"),
        (
            "[broker]\nname = 5",
            "`broker.name` (config.toml, line 2) is `5`; expected a name of letters, digits, `.`, `_` and `-`, not of dots alone",
        ),
        (
            "[broker]\nname = \"\"",
            "`broker.name` (config.toml, line 2) is \"\"; expected a name of letters, digits, `.`, `_` and `-`, not of dots alone",
        ),
        (
            "[broker]\nmemory_limit = \"64 megs\"",
            "`broker.memory_limit` (config.toml, line 2) is \"64 megs\"; expected a size above 0 such as \"64MiB\", or \
             a number of bytes",
        ),
        (
            "[broker]\nmemory_limit = 0",
            "`broker.memory_limit` (config.toml, line 2) is `0`; expected a size above 0 such as \"64MiB\", or a number of \
             bytes",
        ),
        (
            "[broker]\ndead_letters = \"keep\"",
            "`broker.dead_letters` (config.toml, line 2) is \"keep\"; expected \"individual\", \"shared\" or \"discard\"",
        ),
        (
            "[broker.redelivery]\nback_off = 0.5",
            "`broker.redelivery.back_off` (config.toml, line 2) is `0.5`; expected a factor from 1 up, such as 2.0",
        ),
        (
            "[broker.redelivery]\nmaximum_redeliveries = -2",
            "`broker.redelivery.maximum_redeliveries` (config.toml, line 2) is `-2`; expected a whole number, or -1 for no \
             limit",
        ),
        (
            "[templates.t]\npriority = 12",
            "`templates.t.priority` (config.toml, line 2) is `12`; expected a whole number from 0 to 9",
        ),
        (
            "[application]\nexpect = \"on_order\"",
            "`application.expect` (config.toml, line 2) is \"on_order\"; expected a list of the ids of listeners",
        ),
        (
            "[listeners.on_order]\nqueue = \"a\"\ntopic = \"b\"",
            "`listeners.on_order` (config.toml, line 1) is on a queue and a topic at once; expected one of `queue` and \
             `topic`",
        ),
    ];
    for (text, expected) in cases {
        refused(text, expected);
    }
}

/// Another character would make of `vm://NAME` an URL of something else, or none; dots alone would lead out of the data
/// directory.
#[test]
fn a_broker_name_that_its_url_or_its_directory_cannot_have_is_refused() {
    for name in ["a?b", "a/b", "a b", "a&b", "a#b", "//", "ä", "a%20b", ".", "..", "..."] {
        refused(
            &format!("[broker]\nname = \"{name}\""),
            &format!(
                "`broker.name` (config.toml, line 2) is \"{name}\"; expected a name of letters, digits, `.`, `_` and `-`, not of dots alone"
            ),
        );
    }
    for name in ["a", "-", ".a", "shop.eu-1_b"] {
        assert_eq!(read(&format!("[broker]\nname = \"{name}\"")).unwrap().broker.unwrap().name, name);
    }
}

#[test]
fn a_store_that_could_not_work_is_refused() {
    let cases = [
        ("max_file_length = 0", "`0`", "a size from \"16KiB\" to \"1GiB\""),
        ("max_file_length = \"15KiB\"", "\"15KiB\"", "a size from \"16KiB\" to \"1GiB\""),
        ("max_file_length = \"1025MiB\"", "\"1025MiB\"", "a size from \"16KiB\" to \"1GiB\""),
        ("max_file_length = \"32 megs\"", "\"32 megs\"", "a size from \"16KiB\" to \"1GiB\""),
        (
            "store_limit = \"63MiB\"",
            "\"63MiB\"",
            "a size such as \"10GiB\", of at least two files of the journal (`max_file_length`)",
        ),
        ("checkpoint_after = 0", "`0`", "a size above 0 such as \"256MiB\""),
        (
            "cleanup_interval = \"0s\"",
            "\"0s\"",
            "a duration above 0 such as \"30s\", or a number of milliseconds",
        ),
        ("cleanup_interval = -1", "`-1`", "a duration above 0 such as \"30s\", or a number of milliseconds"),
        ("ack_sync = \"yes\"", "\"yes\"", "true or false"),
        ("archive_data_logs = 1", "`1`", "true or false"),
        ("directory = \"\"", "\"\"", "the path of a directory"),
        ("directory_archive = \"\"", "\"\"", "the path of a directory that is none of the store's own"),
        (
            "directory_archive = \"./journal/old\"",
            "\"./journal/old\"",
            "the path of a directory that is none of the store's own",
        ),
    ];
    for (line, found, expected) in cases {
        let key = line.split(' ').next().unwrap();
        refused(
            &format!("[broker.store]\n{line}"),
            &format!("`broker.store.{key}` (config.toml, line 2) is {found}; expected {expected}"),
        );
    }
    refused(
        "[broker]\ndata_directory = 5",
        "`broker.data_directory` (config.toml, line 2) is `5`; expected the path of a directory",
    );
    refused(
        "[broker.store]\nmax_file_lenght = \"1MiB\"",
        "`broker.store.max_file_lenght` (config.toml, line 2) is not known; did you mean `max_file_length`?; known here: \
         `directory`, `sync_on_write`, `max_file_length`, `store_limit`, `ack_sync`, `checkpoint_after`, \
         `cleanup_interval`, `archive_data_logs`, `directory_archive`",
    );
}

#[test]
fn a_directory_that_is_given_twice_is_refused() {
    refused(
        "[broker]\ndata_directory = \"a\"\n[broker.store]\ndirectory = \"a\"",
        "`broker.store.directory` (config.toml, line 4) is a second value for `broker.data_directory`; expected one of the \
         two",
    );
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let error =
        read("[broker]\nnam = \"x\"\nmemory_limit = \"?\"\n[templates.t]\npriority = 10").unwrap_err();
    assert_eq!(error.each().len(), 3);
    assert!(matches!(error, ConfigError::Several(_)));
    let text = error.to_string();
    assert!(
        text.starts_with(
            "3 things are wrong with the configuration:\n  - `broker.nam` (config.toml, line 2)"
        ),
        "{text}"
    );
}

#[test]
fn what_is_not_toml_is_shown_with_its_line() {
    let error = Document::from_text("config.toml", "[broker]\nname = local\n").unwrap_err().to_string();
    assert!(
        error.starts_with("`config.toml` is not valid TOML: TOML parse error at line 2, column 8"),
        "{error}"
    );
}

#[test]
fn a_key_that_stands_twice_is_refused() {
    let error =
        Document::from_text("config.toml", "[broker]\nname = \"a\"\nname = \"b\"\n").unwrap_err().to_string();
    assert!(error.contains("line 3") && error.contains("duplicate key"), "{error}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Document::from_file("no/such/config.toml").unwrap_err().to_string();
    let whole = std::env::current_dir().unwrap().join("no/such/config.toml");
    assert!(
        error.starts_with(&format!("the configuration `{}` cannot be read: ", whole.display())),
        "{error}"
    );
}

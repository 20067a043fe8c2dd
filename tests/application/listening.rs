//! A broker that listens for clients of other processes.

use std::net::{TcpListener, TcpStream};

use corriere::config::Document;
use corriere::prelude::*;

use crate::{application, refused};

fn address(url: &str) -> &str {
    url.strip_prefix("tcp://").unwrap()
}

#[tokio::test]
async fn port_0_is_a_free_one_that_can_be_read_and_is_free_again_after_the_stop() {
    let config = "[broker]\nname = \"listening\"\nlisten = [\"tcp://127.0.0.1:0\", \"tcp://127.0.0.1:0\"]";
    let app = application(config).listeners([]).start().await.unwrap();
    let urls = app.listen_urls();
    assert_eq!(urls.len(), 2);
    for url in &urls {
        assert!(url.starts_with("tcp://127.0.0.1:") && !url.ends_with(":0"), "{url}");
        TcpStream::connect(address(url)).unwrap();
    }
    app.stop().await;
    for url in &urls {
        TcpStream::connect(address(url)).unwrap_err();
        TcpListener::bind(address(url)).unwrap();
    }
}

#[tokio::test]
async fn without_a_word_it_listens_nowhere() {
    let app = application("[broker]\nname = \"silent\"").listeners([]).start().await.unwrap();
    assert!(app.listen_urls().is_empty());
    app.stop().await;
}

#[tokio::test]
async fn an_address_that_is_taken_stops_the_start_and_is_named_with_its_key() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("tcp://{}", taken.local_addr().unwrap());
    let config = format!("[broker]\nname = \"taken-port\"\nlisten = [\"tcp://127.0.0.1:0\", \"{url}\"]");
    let said = refused(application(&config).listeners([])).await;
    assert_eq!(said.len(), 1);
    let start = format!(
        "`broker.listen` (config.toml:3:10): cannot listen on `{url}`: another program has the port; port 0 takes a free one"
    );
    assert_eq!(said[0].lines().next(), Some(start.as_str()));
    assert!(!corriere::broker::Broker::running().contains(&"taken-port".to_owned()), "the broker runs on");
}

#[tokio::test]
async fn an_address_that_others_can_reach_or_that_is_none_is_refused() {
    for (url, part) in [
        ("tcp://0.0.0.0:0", "can be reached from other machines"),
        ("http://127.0.0.1:0", "is no address to listen on"),
        ("tcp://127.0.0.1:0?maximumConections=1", "did you mean `maximumConnections`?"),
    ] {
        let config = format!("[broker]\nname = \"refused-address\"\nlisten = [\"{url}\"]");
        let said = refused(application(&config).listeners([])).await;
        assert!(said[0].starts_with("`broker.listen` (config.toml:3:12): "), "{}", said[0]);
        assert!(said[0].contains(part) && said[0].contains(url.split('?').next().unwrap()), "{}", said[0]);
    }
}

#[tokio::test]
async fn all_addresses_are_checked_before_the_broker_starts_and_with_all_else_that_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let config = format!(
        "[broker]\nname = \"unstarted\"\ndata_directory = {:?}\nlisten = [\"tcp://127.0.0.1:0\", \"tpc://127.0.0.1:0\", \
         \"tcp://127.0.0.1:0?maximumConnections=0&wireFormat.maxFrameSize=1\", \"tcp://[::]:0\"]\n\
         [templates.t]\nconnection_factory = \"none\"",
        directory.path()
    );
    assert!(application(&config).listeners([]).check().is_err(), "a check says it too");
    let said = refused(application(&config).listeners([])).await;
    let expected = [
        "`templates.t.connection_factory` (config.toml:6:22): there is no connection factory `none`",
        "`broker.listen` (config.toml:4:33): `tpc://127.0.0.1:0` is no address to listen on, as its scheme is `tpc`; \
         did you mean `tcp://127.0.0.1:0`?",
        "`broker.listen` (config.toml:4:54): `tcp://127.0.0.1:0`: option `maximumConnections` is `0`; expected a number \
         of connections above 0",
        "`broker.listen` (config.toml:4:54): `tcp://127.0.0.1:0`: option `wireFormat.maxFrameSize` is `1`; expected a \
         number of bytes from 65536 up",
        "`broker.listen` (config.toml:4:122): `tcp://[::]:0` can be reached from other machines",
    ];
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.starts_with(expected), "{said}");
    }
    assert_eq!(directory.path().read_dir().unwrap().count(), 0, "nothing was started");
}

#[tokio::test]
async fn an_address_of_an_environment_variable_is_named_with_the_variable() {
    let document = Document::from_text("config.toml", "[broker]\nname = \"variable-address\"").unwrap();
    let document = document.with_environment([("CORRIERE__BROKER__LISTEN", "tcp://127.0.0.1:1?maximum=1")]);
    let said = refused(Application::from_document(document).listeners([])).await;
    let start = "`broker.listen` (environment variable CORRIERE__BROKER__LISTEN): `tcp://127.0.0.1:1` has the unknown option";
    assert!(said[0].starts_with(start), "{}", said[0]);
}

#[tokio::test]
async fn what_is_wrong_with_an_address_from_the_environment_is_said_without_it() {
    let document = Document::from_text(
        "config.toml",
        "[broker]\nname = \"unseen-address\"\nlisten = ['${env:ADDRESS_SECRET}']",
    )
    .unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("tcp://{}", port.local_addr().unwrap());
    let option = |option: &str| format!("tcp://127.0.0.1:0?{option}");
    for (value, part) in [
        ("127.0.0.1:0".to_owned(), "; expected addresses such as `tcp://127.0.0.1:61616`"),
        (
            "tpc://127.0.0.1:0".to_owned(),
            "; an address has a scheme that is not listened on; did you mean `tcp`?",
        ),
        ("tcp://0.0.0.0:0".to_owned(), "; an address can be reached from other machines, "),
        (taken, "; cannot listen there: another program has the port; "),
        (option("maximumConections=1"), "has an unknown option; did you mean `maximumConnections`?"),
        (option("zzz=1"), "; an address has an unknown option"),
        (
            option("maximumConnections=1&maximumConnections=2"),
            "option `maximumConnections` twice; expected it once",
        ),
        (
            option("maximumConnections=many"),
            "; option `maximumConnections` should be a number of connections above 0",
        ),
    ] {
        let document = document.clone().with_environment([("ADDRESS_SECRET", value.as_str())]);
        let said = refused(Application::from_document(document).listeners([])).await;
        assert!(said[0].contains("holds; ") && said[0].contains(part), "{}", said[0]);
        assert!(!said[0].contains(&value) && !said[0].contains("many"), "{}", said[0]);
    }
}

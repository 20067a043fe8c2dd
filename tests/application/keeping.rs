//! Messages in a data directory.

use std::path::Path;

use corriere::broker::files::{Disk, FileSystem};
use corriere::prelude::*;

use crate::{application, refused};

const CONFIG: &str = "[broker]\n[templates.any]";

async fn started(broker: &str, directory: &Path) -> Application {
    application(CONFIG)
        .set("broker.name", broker)
        .set("broker.data_directory", directory.to_str().unwrap())
        .set("broker.store.max_file_length", "64KiB")
        .listeners([])
        .start()
        .await
        .unwrap()
}

#[tokio::test]
async fn what_was_sent_is_there_at_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let app = started("kept", directory.path()).await;
    let template: JmsTemplate = app.bean("any").unwrap();
    for number in 0..100 {
        template.convert_and_send_to("numbers", &number).await.unwrap();
    }
    drop(template);
    app.stop().await;
    assert!(directory.path().join("kept/journal").is_dir());

    let app = started("kept", directory.path()).await;
    let template: JmsTemplate = app.bean("any").unwrap();
    for number in 0..100 {
        assert_eq!(template.receive_and_convert_from("numbers").await.unwrap(), Some(number));
    }
    app.stop().await;
}

#[tokio::test]
async fn a_copied_directory_works() {
    let directory = tempfile::tempdir().unwrap();
    let app = started("moving", &directory.path().join("here")).await;
    let template: JmsTemplate = app.bean("any").unwrap();
    template.convert_and_send_to("numbers", &7).await.unwrap();
    app.stop().await;
    std::fs::rename(directory.path().join("here"), directory.path().join("there")).unwrap();
    let app = started("moving", &directory.path().join("there")).await;
    let template: JmsTemplate = app.bean("any").unwrap();
    assert_eq!(template.receive_and_convert_from("numbers").await.unwrap(), Some(7));
    app.stop().await;
}

#[tokio::test]
async fn a_directory_that_another_process_has_is_named_with_its_key_and_its_holder() {
    let directory = tempfile::tempdir().unwrap();
    let own = directory.path().join("taken");
    Disk.create_directory(&own).unwrap();
    let held = Disk.lock(&own.join("lock"), "somebody else").unwrap();
    let builder = || {
        application(CONFIG)
            .set("broker.name", "taken")
            .set("broker.data_directory", directory.path().to_str().unwrap())
            .listeners([])
    };
    let said = refused(builder()).await;
    assert_eq!(said.len(), 1);
    assert!(said[0].starts_with("`broker.data_directory`: "), "{said:?}");
    assert!(said[0].contains(own.to_str().unwrap()) && said[0].contains("somebody else"), "{said:?}");
    drop(held);
    builder().start().await.unwrap().stop().await;
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "not a directory").unwrap();
    let builder = application(CONFIG).set("broker.name", "nowhere").listeners([]);
    let said = refused(builder.set("broker.data_directory", file.to_str().unwrap())).await;
    assert!(said[0].starts_with("`broker.data_directory`: "), "{said:?}");
    assert!(said[0].contains(file.join("nowhere").to_str().unwrap()), "{said:?}");
}

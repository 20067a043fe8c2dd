//! The directory that a journal is in.

use std::fs;
use std::path::Path;

use corriere_broker::journal::OpenError;
use corriere_core::AcknowledgeMode::Auto;

use crate::support::{End, Home, firsts, queue, send_text};

#[tokio::test]
async fn two_brokers_do_not_write_to_one_directory() {
    for home in [Home::on_disk(), Home::recorded()] {
        let broker = home.start();
        let error = home.open().unwrap_err();
        assert!(matches!(error, OpenError::Locked { .. }), "{error:?}");
        let holder = std::process::id().to_string();
        assert!(error.to_string().contains(&holder), "`{error}` should say that process {holder} has it");
        send_text(&broker.session(Auto).await, &queue("q"), "m1").await;
        broker.stop();
        let broker = home.start();
        assert_eq!(broker.drain(&queue("q")).await, firsts(1..=1));
        broker.stop();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[tokio::test]
async fn a_copied_directory_and_a_moved_one_work() {
    let mut home = Home::on_disk();
    let broker = home.start();
    broker.send(&queue("q"), 1..=20).await;
    home.end(broker, End::Stop);
    let original = home.options.directory.clone();
    let (copied, moved) = (original.with_file_name("copied"), original.with_file_name("moved"));
    copy(&original, &copied);
    fs::rename(&original, &moved).unwrap();
    for directory in [copied, moved] {
        home.options.directory = directory;
        let broker = home.start();
        broker.send(&queue("q"), 21..=22).await;
        assert_eq!(broker.drain(&queue("q")).await, firsts(1..=22));
        broker.stop();
    }
}

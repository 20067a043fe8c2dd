//! A journal that is damaged, or has a piece missing, when the broker starts (C-45 a and c).

use std::time::Duration;

use corriere_broker::journal::OpenError;
use corriere_broker::journal::inspect::repair;
use corriere_core::Destination;

use crate::support::{End, Home, Running, queue, send_text};

/// Fifty messages over many small files, and nothing in the checkpoint of it.
async fn fifty(home: &mut Home) -> Running {
    home.options.max_file_length = 16 * 1024;
    home.options.cleanup_interval = Duration::from_secs(3_600);
    let broker = home.start();
    send_fifty(&broker, &queue("q")).await;
    assert!(home.segments().len() > 4);
    broker
}

async fn send_fifty(broker: &Running, q: &Destination) {
    let session = broker.session(corriere_core::AcknowledgeMode::Auto).await;
    for number in 1..=50 {
        send_text(&session, q, &padded(number)).await;
    }
}

fn padded(number: u32) -> String {
    format!("m{number}.{}", "x".repeat(2_000))
}

/// That the start is refused by name, and that it left everything as it was.
fn assert_refused(home: &Home, expected: impl Fn(&OpenError) -> bool, words: &[&str]) {
    let before = home.everything();
    for _ in 0..2 {
        let error = home.open().expect_err("a journal that is not whole");
        assert!(expected(&error), "{error:?}");
        let text = error.to_string();
        for word in words {
            assert!(text.contains(word), "`{word}` should be in: {text}");
        }
    }
    assert!(home.everything() == before, "a refused start changed the journal");
}

/// C-45 (a).
#[tokio::test]
async fn one_bit_in_the_middle_stops_the_start_and_names_the_place() {
    let mut home = Home::recorded();
    let broker = fifty(&mut home).await;
    home.end(broker, End::Kill);
    let (path, _) = home.damage("m20.");
    let file = path.file_name().unwrap().to_str().unwrap().to_owned();
    let is_damaged = |error: &OpenError| matches!(error, OpenError::Damaged { .. });
    assert_refused(&home, is_damaged, &[&file, "corriere-store repair"]);
    // Turned back, all is there.
    home.damage("i20.");
    let broker = home.start();
    assert_eq!(broker.drain(&queue("q")).await.len(), 50);
    broker.stop();
}

/// C-45 (b).
#[tokio::test]
async fn a_repair_brings_over_all_but_the_damaged_one_and_names_it() {
    let mut home = Home::recorded();
    let broker = fifty(&mut home).await;
    home.end(broker, End::Kill);
    let (path, _) = home.damage("m20.");
    let into = home.options.directory.with_file_name("repaired");
    let repaired = repair(&home.files(), &home.options.directory, &into).unwrap();
    let lost = format!("{repaired:?}");
    let file = path.file_name().unwrap().to_str().unwrap();
    assert!(lost.contains(file), "`{file}` should be in: {lost}");
    home.options.directory = into;
    let broker = home.start();
    let seen = broker.drain(&queue("q")).await;
    let expected: Vec<_> = (1..=50).filter(|number| *number != 20).map(padded).collect();
    assert!(seen.iter().map(|seen| &seen.text).eq(&expected), "{} of 49", seen.len());
    broker.stop();
}

/// C-45 (c).
#[tokio::test]
async fn a_missing_file_stops_the_start_and_is_named() {
    for end in [End::Kill, End::Stop] {
        let mut home = Home::recorded();
        let broker = fifty(&mut home).await;
        home.end(broker, end);
        let path = home.segments().remove(2);
        home.files().remove(&path).unwrap();
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        let is_missing = |error: &OpenError| matches!(error, OpenError::Missing { .. });
        assert_refused(&home, is_missing, &[&file]);
    }
}

/// C-45, the other end: what nobody was promised is no damage.
#[tokio::test]
async fn the_end_of_the_last_file_may_be_torn() {
    for bytes in [1, 100, 511, 512, 1_500] {
        let mut home = Home::recorded();
        let broker = fifty(&mut home).await;
        home.end(broker, End::Kill);
        let (path, at) = home.find("m50.").unwrap();
        let file = home.files().open(&path, corriere_broker::files::OpenMode::Existing).unwrap();
        file.write_all_at(&vec![0; bytes], at).unwrap();
        let broker = home.start();
        let seen = broker.drain(&queue("q")).await;
        assert_eq!(seen.len(), 49, "{bytes} bytes of the last record are gone");
        assert!(seen.iter().zip(1..).all(|(seen, number)| seen.text == padded(number)));
        broker.stop();
    }
}

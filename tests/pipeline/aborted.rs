//! A handler that kills its process: its message ends in the dead letters, and all others are handled.

use corriere_templates::{JsonConverter, MessageConverter};

use crate::dead_letters;
use crate::program::Program;

/// Six redeliveries are seven deliveries.
const DELIVERIES: i32 = 7;

#[test]
fn a_message_that_kills_every_process_is_a_dead_letter_after_its_deliveries() {
    let mut directory = tempfile::tempdir().unwrap();
    for _ in 0..DELIVERIES {
        let ended = Program::start_in(directory, "aborting", ["data", "handled"]).end();
        assert_eq!(ended.code, None, "it dies of the message: {ended:?}");
        directory = ended.directory;
    }
    let ended = Program::start_in(directory, "aborting", ["data", "handled"]).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let handled = std::fs::read_to_string(ended.directory.path().join("handled")).unwrap();
    assert_eq!(handled, "a\nb\nd\ne\n");

    let dead_letters = dead_letters::on_queue(&ended.directory.path().join("data"), "DLQ.jobs");
    let [deadly] = &dead_letters[..] else { panic!("{dead_letters:?}") };
    assert_eq!(deadly.property("JMSXDeliveryCount"), Ok(Some(DELIVERIES)));
    let cause: String = deadly.property("dlqDeliveryFailureCause").unwrap().unwrap();
    assert!(!cause.is_empty());
    let json: &dyn MessageConverter = &JsonConverter::default();
    assert_eq!(json.decode::<String>(deadly).unwrap(), "deadly");
}

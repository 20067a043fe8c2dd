//! The two small programs.

use crate::program::Program;

#[test]
fn the_quickstart_greets_and_ends_when_it_is_asked_to() {
    let mut quickstart = Program::start("quickstart", [""; 0]);
    quickstart.wait_until(|program| program.stdout().contains("Hello, world!"));
    // It may greet before it listens for signals.
    quickstart.wait_until(|program| program.stderr().contains("running until"));
    quickstart.signal("TERM");
    let ended = quickstart.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn the_orders_program_confirms_its_order_and_comes_to_an_end() {
    let ended = Program::start("orders", ["--once"]).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mails = ended.files("target/orders/outbox");
    assert_eq!(mails.len(), 1, "{mails:?}");
}

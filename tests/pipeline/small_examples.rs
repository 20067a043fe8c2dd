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

#[test]
fn a_check_shows_what_holds_and_its_exit_code_tells_whether_it_is_right() {
    let run = |environment: &[(&str, &str)]| {
        Program::start_with(tempfile::tempdir().unwrap(), "orders", ["--once"], environment).end()
    };
    let right = run(&[("CORRIERE_CHECK", "1"), ("CORRIERE__BROKER__SEND_DEADLINE", "7s")]);
    assert_eq!(right.code, Some(0), "{right:?}");
    assert!(
        right.stdout.contains("# environment variable CORRIERE__BROKER__SEND_DEADLINE\n")
            && right.stdout.contains("# listener `on_order` in "),
        "{right:?}"
    );
    assert!(!right.directory.path().join("target").exists(), "it was started");

    let wrong = run(&[("CORRIERE_CHECK", "1"), ("CORRIERE__BROKER__SEND_DEADLINE", "soon")]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(wrong.stderr.contains("CORRIERE__BROKER__SEND_DEADLINE=soon\n"), "{wrong:?}");
}

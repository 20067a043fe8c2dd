//! The pipeline with a mail server: whatever the server does, no mail is lost, and none is sent twice unless its answer
//! was lost.

use std::collections::{BTreeMap, BTreeSet};

use crate::mail_server::{MailServer, Taken};
use crate::program::{Ended, Program};
use crate::reference::sound_orders;

fn start(server: &MailServer, environment: &[(&str, &str)]) -> Program {
    let directory = tempfile::tempdir().unwrap();
    let url = server.url();
    Program::start_with(directory, "order_pipeline", ["--json", "--smtp", &url], environment)
}

/// The message ids of the sample's sound orders.
fn expected() -> BTreeSet<String> {
    sound_orders().iter().map(|row| format!("<order-{}@corriere.example>", row["order_id"])).collect()
}

fn ids(taken: &[Taken]) -> BTreeSet<String> {
    taken.iter().map(|taken| taken.id.clone()).collect()
}

/// Every order's mail was taken with a word to the program, once.
fn assert_each_once(taken: &[Taken]) {
    let mut answers = BTreeMap::<_, u32>::new();
    for taken in taken.iter().filter(|taken| taken.answered) {
        *answers.entry(taken.id.clone()).or_default() += 1;
    }
    assert_eq!(answers.keys().cloned().collect::<BTreeSet<_>>(), expected());
    assert!(answers.values().all(|count| *count == 1), "{answers:?}");
}

fn assert_all_sent(ended: &Ended) {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json = ended.json();
    assert_eq!((json.orders, json.emails, json.dead_letters), (320, 300, 20));
}

#[test]
fn every_mail_reaches_the_server_once() {
    let server = MailServer::start();
    let ended = start(&server, &[]).end();
    assert_all_sent(&ended);
    assert_eq!(ended.json().redeliveries, 0);
    assert_each_once(&server.taken());
    let to: BTreeSet<_> = server.taken().into_iter().flat_map(|taken| taken.to).collect();
    assert_eq!(to, sound_orders().into_iter().map(|mut row| row.remove("email").unwrap()).collect());
}

#[test]
fn a_server_that_is_down_for_a_while_gets_every_mail_once_it_is_back() {
    let mut server = MailServer::start();
    server.set("down");
    let mut program = start(&server, &[]);
    program.wait_until(|program| program.stderr().matches("onnection refused").count() > 3);
    server.set("accept");
    program.wait_until(|_| server.taken().len() > 50);
    server.set("down");
    let refused = program.stderr().matches("onnection refused").count();
    program.wait_until(|program| program.stderr().matches("onnection refused").count() > refused);
    server.set("accept");
    let ended = program.end();
    assert_all_sent(&ended);
    assert!(ended.json().redeliveries > 3);
    assert_each_once(&server.taken());
}

#[test]
fn a_server_that_is_busy_is_tried_again() {
    let mut server = MailServer::start();
    server.set("busy");
    let mut program = start(&server, &[]);
    program.wait_until(|program| program.stderr().matches("450").count() > 3);
    server.set("accept");
    let ended = program.end();
    assert_all_sent(&ended);
    assert_each_once(&server.taken());
}

#[test]
fn what_the_server_refuses_for_good_is_a_dead_letter_at_once() {
    let orders = sound_orders();
    let refused = &orders[7]["email"];
    let count = orders.iter().filter(|row| row["email"] == *refused).count();
    let mut server = MailServer::start();
    server.set(&format!("refuse {refused}"));
    let ended = Program::start("order_pipeline", ["--smtp", &server.url()]).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let line = |name: &str| {
        let line = ended.stdout.lines().find_map(|line| line.trim_start().strip_prefix(name));
        line.and_then(|count| count.trim().parse::<usize>().ok())
            .unwrap_or_else(|| panic!("{name}: {ended:?}"))
    };
    assert_eq!(
        (line("mail refused"), line("dead letters"), line("e-mails")),
        (count, 20 + count, 300 - count)
    );
    assert_eq!(line("redeliveries"), 0);
    assert!(ended.stderr.contains("mail refused: 550 5.1.1 no such user"), "{ended:?}");
    assert_eq!(ids(&server.taken()).len(), 300 - count);
}

#[test]
fn a_login_that_is_refused_buries_no_mail_and_shows_no_password() {
    let mut server = MailServer::start_for("shop", "geheim@1");
    server.set("locked");
    let url = format!("smtp://shop:geheim%401@{}", server.address());
    let environment = [("SMTP_URL", url.as_str()), ("RUST_LOG", "trace")];
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--json", "--sink", "smtp"];
    let mut program = Program::start_with(directory, "order_pipeline", arguments, &environment);
    program.wait_until(|program| program.stderr().matches("535").count() > 3);
    server.set("accept");
    let ended = program.end();
    assert_all_sent(&ended);
    assert_each_once(&server.taken());
    assert!(!ended.stderr.contains("geheim"), "{ended:?}");
}

#[test]
fn a_mail_whose_answer_was_lost_is_sent_again_and_no_other() {
    let mut server = MailServer::start();
    server.set("lose");
    let mut program = start(&server, &[]);
    program.wait_until(|_| server.taken().len() > 3);
    server.set("accept");
    let ended = program.end();
    assert_all_sent(&ended);
    assert_each_once(&server.taken());
}

#[test]
fn a_server_that_hangs_is_given_up_and_tried_again() {
    let mut server = MailServer::start();
    server.set("hang");
    let mut program = start(&server, &[("CORRIERE__BEANS__MAILER__TIMEOUT", "1")]);
    program.wait_until(|program| program.stderr().matches("no end within 1 s").count() > 3);
    server.set("accept");
    let ended = program.end();
    assert_all_sent(&ended);
    // It may take what it had received whole before it hung, and nobody is there any more to be told.
    assert_eq!(ids(&server.taken()), expected());
}

#[cfg(unix)]
#[test]
fn a_mail_that_is_under_way_or_waits_does_not_hold_up_the_end() {
    // Without a quick end the program would outlast the test's patience.
    let for_ever = [
        ("CORRIERE__BEANS__MAILER__TIMEOUT", "3600"),
        ("CORRIERE__LISTENER_CONTAINERS__MAILING__SHUTDOWN_TIMEOUT", "1h"),
    ];
    for mode in ["hang", "busy"] {
        let mut server = MailServer::start();
        server.set("accept");
        let mut program = start(&server, &for_ever);
        program.wait_until(|_| server.taken().len() > 20);
        server.set(mode);
        if mode == "busy" {
            program.wait_until(|program| program.stderr().contains("450"));
        }
        program.signal("TERM");
        let ended = program.end();
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("stopped by SIGTERM before the end"), "{ended:?}");
        let taken = server.taken().len() as u64;
        assert_eq!(ended.json().emails, taken, "{mode}: what was taken is acknowledged, and nothing else");
    }
}

//! What the tests of the order pipeline need besides Rust: a mail server of Debian's.

use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::project::Project;
use crate::system;

/// Debian's package of it, which is for the system's own Python.
const PACKAGE: &str = "python3-aiosmtpd";

/// Installs the mail server where it is missing and can be installed, and says what is to be done where not.
pub(crate) fn prepare(project: &Project) -> Result<(), Failure> {
    if has_server() {
        return Ok(());
    }
    if !system::can_install() {
        println!("    the tests with a mail server will fail: they need {PACKAGE}, or Python's aiosmtpd");
        return Ok(());
    }
    system::install(project, &[PACKAGE])
}

fn has_server() -> bool {
    ["/usr/bin/python3", "python3"].iter().any(|python| {
        let mut command = Command::new(python);
        command.args(["-c", "import aiosmtpd.smtp"]).stdin(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

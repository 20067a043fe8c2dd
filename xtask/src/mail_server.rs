//! What the tests of the order pipeline need besides Rust: a mail server of Debian's.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::process::Run;
use crate::project::Project;

/// Debian's package of it, which is for the system's own Python.
const PACKAGE: &str = "python3-aiosmtpd";

/// Installs the mail server where it is missing and can be installed, and says what is to be done where not.
pub(crate) fn prepare(project: &Project) -> Result<(), Failure> {
    if has_server() {
        return Ok(());
    }
    if !is_root() || !Path::new("/usr/bin/apt-get").exists() {
        println!("    the tests with a mail server will fail: they need {PACKAGE}, or Python's aiosmtpd");
        return Ok(());
    }
    let install = ["install", "--yes", "--no-install-recommends", PACKAGE];
    let apt = |arguments: &[&str]| Run::program(project.root(), "apt-get", arguments).check();
    // The lists of packages may be missing, or too old.
    apt(&install).or_else(|_| apt(&["update"]).and_then(|()| apt(&install)))
}

fn has_server() -> bool {
    ["/usr/bin/python3", "python3"].iter().any(|python| {
        let mut command = Command::new(python);
        command.args(["-c", "import aiosmtpd.smtp"]).stdin(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

fn is_root() -> bool {
    let asked = Command::new("id").arg("-u").stdin(Stdio::null()).output();
    asked.is_ok_and(|answer| answer.stdout == b"0\n")
}

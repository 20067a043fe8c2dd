//! What checks need of the system besides Rust, from Debian's packages.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::process::Run;
use crate::project::Project;

/// Whether packages can be installed here.
pub(crate) fn can_install() -> bool {
    is_root() && Path::new("/usr/bin/apt-get").exists()
}

/// Installs packages of Debian's, as root.
pub(crate) fn install(project: &Project, packages: &[&str]) -> Result<(), Failure> {
    let install = [&["install", "--yes", "--no-install-recommends"], packages].concat();
    let apt = |arguments: &[&str]| Run::program(project.root(), "apt-get", arguments).check();
    // The lists of packages may be missing, or too old.
    apt(&install).or_else(|_| apt(&["update"]).and_then(|()| apt(&install)))
}

fn is_root() -> bool {
    let asked = Command::new("id").arg("-u").stdin(Stdio::null()).output();
    asked.is_ok_and(|answer| answer.stdout == b"0\n")
}

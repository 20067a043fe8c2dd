//! What the tests need that run Java's programs on our broker, and our client on ActiveMQ.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::project::Project;
use crate::system;

/// Debian's packages, and something that each brings.
const PACKAGES: &[(&str, Part)] = &[
    ("default-jdk-headless", Part::Program("javac")),
    ("libactivemq-java", Part::Jar("activemq-client")),
    ("libspring-jms-java", Part::Jar("spring3-jms")),
    ("libspring-context-java", Part::Jar("spring3-context")),
    ("libspring-messaging-java", Part::Jar("spring3-messaging")),
    ("libslf4j-java", Part::Jar("slf4j-nop")),
];

/// How it is seen whether a package is there.
#[derive(Debug)]
enum Part {
    Program(&'static str),
    Jar(&'static str),
}

/// Installs what is missing of a JDK, ActiveMQ and Spring, or says what has to be installed.
pub(crate) fn prepare(project: &Project) -> Result<(), Failure> {
    let missing: Vec<&str> =
        PACKAGES.iter().filter(|(_, part)| !is_there(part)).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !system::can_install() {
        let missing = missing.into_iter().map(str::to_owned).collect();
        return Failure::unless_empty("these packages of Debian's must be installed first:", missing);
    }
    system::install(project, &missing)
}

fn is_there(part: &Part) -> bool {
    match part {
        Part::Jar(name) => Path::new("/usr/share/java").join(format!("{name}.jar")).exists(),
        Part::Program(name) => {
            let mut command = Command::new(name);
            command.arg("-version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        }
    }
}

//! The Java programs of `interop/java`, compiled once for each test binary, and a real ActiveMQ among them. They need
//! Debian's packages, which `cargo xtask test` installs where it may.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// Debian's packages, without which nothing here runs.
const PACKAGES: &str = "default-jdk-headless libactivemq-java libspring-jms-java libspring-context-java \
                        libspring-messaging-java libslf4j-java";

/// Debian's names of what the programs need: ActiveMQ and its client, Spring, and what these need.
const JARS: &[&str] = &[
    "activemq-broker",
    "activemq-client",
    "activemq-openwire-legacy",
    "hawtbuf",
    "geronimo-jms_1.1_spec",
    "geronimo-jta-1.2-spec",
    "geronimo-j2ee-management-1.1-spec",
    "slf4j-api",
    "slf4j-nop",
    "jcl-over-slf4j",
    "spring3-core",
    "spring3-beans",
    "spring3-context",
    "spring3-aop",
    "spring3-expression",
    "spring3-transaction",
    "spring3-messaging",
    "spring3-jms",
];

/// The command that runs a program.
///
/// # Panics
/// The programs cannot be compiled; it says what to install.
#[must_use]
pub fn command(class: &str, arguments: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new("java");
    command.args(["-Xmx512m", "-Dfile.encoding=UTF-8", "-cp", class_path(), class]).args(arguments);
    command
}

/// Starts what [`command`] made.
///
/// # Panics
/// It cannot be started; it says what to install.
#[must_use]
pub fn start(command: &mut Command) -> Child {
    command.spawn().unwrap_or_else(|error| panic!("java cannot be started ({error}); {}", advice()))
}

/// Waits for the end of a process, and kills it when that does not come: then the answer is `None`.
///
/// # Panics
/// It can neither be waited for nor killed.
pub fn wait(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

/// ActiveMQ, without a store, on a free port, in a process of its own. That ends with its standard input, so none outlives the
/// tests.
#[derive(Debug)]
pub struct ActiveMq {
    /// Has its standard input open.
    process: Child,
    url: String,
}

impl ActiveMq {
    /// Starts one.
    ///
    /// # Panics
    /// It does not come up; it says what to install.
    #[must_use]
    pub fn start() -> Self {
        let mut command = command("Broker", &[""; 0]);
        let mut process = start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = lines.find_map(|line| {
            line.unwrap().strip_prefix("url ").and_then(|url| url.split('?').next()).map(str::to_owned)
        });
        let url = url.unwrap_or_else(|| panic!("ActiveMQ did not come up, see above; {}", advice()));
        Self { process, url }
    }

    /// Where it listens.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends it as a crash would.
    pub fn kill(self) {
        drop(self);
    }
}

impl Drop for ActiveMq {
    fn drop(&mut self) {
        // It keeps nothing. One that has ended already is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The compiled programs and what they need.
fn class_path() -> &'static str {
    static CLASS_PATH: OnceLock<String> = OnceLock::new();
    CLASS_PATH.get_or_init(|| {
        let jars: Vec<String> = JARS.iter().map(|jar| format!("/usr/share/java/{jar}.jar")).collect();
        let jars = jars.join(":");
        let classes = directory();
        if classes.exists() {
            fs::remove_dir_all(&classes).unwrap();
        }
        fs::create_dir_all(&classes).unwrap();
        let mut command = Command::new("javac");
        command.args(["-encoding", "UTF-8", "-nowarn", "-cp", &jars, "-d"]).arg(&classes).args(sources());
        let output = command
            .output()
            .unwrap_or_else(|error| panic!("javac cannot be started ({error}); {}", advice()));
        assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), advice());
        format!("{}:{jars}", classes.display())
    })
}

/// One for each test binary, as several may run at once: beside the folder that they are in.
fn directory() -> PathBuf {
    let binary = std::env::current_exe().unwrap();
    let name = binary.file_stem().unwrap().to_string_lossy();
    let name = name.split('-').next().unwrap_or_default();
    binary.parent().and_then(Path::parent).unwrap().join("java-classes").join(name)
}

fn sources() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("interop/java");
    let mut sources = Vec::new();
    for directory in [root.join("suite"), root] {
        let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        sources.extend(files.filter(|path| path.extension().is_some_and(|extension| extension == "java")));
    }
    sources
}

fn advice() -> String {
    format!("these tests need Java and ActiveMQ: apt-get install --no-install-recommends {PACKAGES}")
}

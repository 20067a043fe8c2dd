//! A real ActiveMQ, `tests/interop/java/Broker.java`, of Debian's packages.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

/// Debian's packages, without which nothing here runs.
const PACKAGES: &str = "default-jdk-headless libactivemq-java libslf4j-java";

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
    "jackson-core",
    "jackson-databind",
    "jackson-annotations",
];

/// A broker in a process of its own. It ends with its standard input, so none outlives the tests.
#[derive(Debug)]
pub(crate) struct ActiveMq {
    child: Child,
    _input: ChildStdin,
    url: String,
}

impl ActiveMq {
    /// The one that all tests share, each with destinations of its own.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<ActiveMq> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    pub(crate) fn start() -> Self {
        let mut child = Command::new("java")
            .args(["-Xmx256m", "-cp", &class_path(), "Broker"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("java cannot be started ({error}); {}", advice()));
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let url = output.lines().find_map(|line| {
            line.unwrap().strip_prefix("url ").and_then(|url| url.split('?').next()).map(str::to_owned)
        });
        let url = url.unwrap_or_else(|| panic!("ActiveMQ did not come up, see above; {}", advice()));
        Self { child, _input: input, url }
    }

    /// Where it listens.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // One that has ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for ActiveMq {
    fn drop(&mut self) {
        self.end();
    }
}

fn class_path() -> String {
    static CLASSES: OnceLock<TempDir> = OnceLock::new();
    let jars: Vec<PathBuf> = JARS
        .iter()
        .map(|jar| Path::new("/usr/share/java").join(format!("{jar}.jar")))
        .filter(|jar| jar.exists())
        .collect();
    let classes = CLASSES.get_or_init(|| compile(&jars));
    let parts = std::iter::once(classes.path().to_path_buf()).chain(jars);
    std::env::join_paths(parts).unwrap().into_string().unwrap()
}

fn compile(jars: &[PathBuf]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("interop/java/Broker.java");
    let status = Command::new("javac")
        .arg("-nowarn")
        .arg("-d")
        .arg(directory.path())
        .arg("-cp")
        .arg(std::env::join_paths(jars).unwrap())
        .arg(source)
        .status()
        .unwrap_or_else(|error| panic!("javac cannot be started ({error}); {}", advice()));
    assert!(status.success(), "Broker.java does not compile, see above; {}", advice());
    directory
}

fn advice() -> String {
    format!("these tests need a real ActiveMQ: apt-get install --no-install-recommends {PACKAGES}")
}

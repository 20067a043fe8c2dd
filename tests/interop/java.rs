//! Compiles the Java programs and runs them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// How long a program may run before it is said to hang.
const PATIENCE: Duration = Duration::from_secs(240);

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

/// What a program printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Ended {
    /// What it printed, if it ended well.
    pub(crate) fn well(self) -> String {
        assert!(self.status.success(), "it ended with {}:\n{}{}", self.status, self.output, self.errors);
        self.output
    }
}

/// Runs a program to its end, without blocking the broker that it talks to.
pub(crate) async fn run(class: &'static str, arguments: &[&str]) -> Ended {
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    tokio::task::spawn_blocking(move || {
        let mut command = command(class, &arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("java could not be started: {error}"));
        let (output, errors) = (reader(child.stdout.take()), reader(child.stderr.take()));
        let status = wait(&mut child, PATIENCE);
        let (output, errors) = (output.join().unwrap(), errors.join().unwrap());
        let status = status.unwrap_or_else(|| panic!("{class} did not end:\n{output}{errors}"));
        Ended { status, output, errors }
    })
    .await
    .unwrap()
}

/// The command that runs a program.
pub(crate) fn command(class: &str, arguments: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new("java");
    command.args(["-Xmx512m", "-Dfile.encoding=UTF-8", "-cp", classpath(), class]).args(arguments);
    command
}

/// Waits for the end of a process, and kills it when that does not come: then the answer is `None`.
pub(crate) fn wait(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
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

fn reader(pipe: Option<impl std::io::Read + Send + 'static>) -> thread::JoinHandle<String> {
    let mut pipe = pipe.unwrap();
    thread::spawn(move || {
        let mut text = Vec::new();
        pipe.read_to_end(&mut text).unwrap();
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// The compiled programs and what they need; compiled once for each run of the tests.
fn classpath() -> &'static str {
    static CLASSPATH: OnceLock<String> = OnceLock::new();
    CLASSPATH.get_or_init(|| {
        let jars =
            JARS.iter().map(|name| format!("/usr/share/java/{name}.jar")).collect::<Vec<_>>().join(":");
        let classes = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interop-classes");
        if classes.exists() {
            fs::remove_dir_all(&classes).unwrap();
        }
        fs::create_dir_all(&classes).unwrap();
        let mut command = Command::new("javac");
        command.args(["-encoding", "UTF-8", "-nowarn", "-cp", &jars, "-d"]).arg(&classes).args(sources());
        let output = command.output().unwrap_or_else(|error| panic!("javac could not be started: {error}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        format!("{}:{jars}", classes.display())
    })
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

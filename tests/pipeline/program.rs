//! Runs the examples as processes.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use tempfile::TempDir;

/// Far more than any example needs, so that only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(600);

/// The folder that holds the programs of the examples and of these tests, which are built at the first use.
pub(crate) static PROGRAMS: LazyLock<PathBuf> = LazyLock::new(|| {
    // This test is `<target>/<profile>/deps/pipeline-…`.
    let test = env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    for package in ["corriere-examples", "corriere-tests"] {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet", "--package", package, "--examples"]);
        cargo.arg("--target-dir").arg(profile.parent().unwrap());
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        let status = cargo.current_dir(workspace()).status().unwrap();
        assert!(status.success(), "the examples of {package} do not build");
    }
    profile.join("examples")
});

/// The workspace's root.
pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A run of an example in a directory of its own.
pub(crate) struct Program {
    child: Child,
    directory: TempDir,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    /// What it wrote is still here.
    pub directory: TempDir,
}

/// What `order_pipeline --json` prints.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Json {
    pub orders: u64,
    pub emails: u64,
    pub dead_letters: u64,
    pub redeliveries: u64,
    pub seconds: f64,
    pub orders_per_s: f64,
}

impl Program {
    /// Starts the example of this name.
    pub(crate) fn start<A: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = A>) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), name, arguments)
    }

    /// Starts the example of this name in `directory`.
    pub(crate) fn start_in<A: AsRef<OsStr>>(
        directory: TempDir,
        name: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self::start_with(directory, name, arguments, &[])
    }

    /// Starts the example of this name in `directory`, with these variables in its environment.
    pub(crate) fn start_with<A: AsRef<OsStr>>(
        directory: TempDir,
        name: &str,
        arguments: impl IntoIterator<Item = A>,
        environment: &[(&str, &str)],
    ) -> Self {
        let child = Command::new(PROGRAMS.join(name))
            .args(arguments)
            .envs(environment.iter().copied())
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(File::create(directory.path().join("stdout")).unwrap())
            .stderr(File::create(directory.path().join("stderr")).unwrap())
            .spawn()
            .unwrap();
        Self { child, directory }
    }

    /// What it has printed so far.
    pub(crate) fn stdout(&self) -> String {
        fs::read_to_string(self.directory.path().join("stdout")).unwrap()
    }

    /// What it has said on standard error so far.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.directory.path().join("stderr")).unwrap()
    }

    /// How many files are in its directory `name` so far.
    pub(crate) fn count_files(&self, name: &str) -> usize {
        fs::read_dir(self.directory.path().join(name)).map_or(0, Iterator::count)
    }

    /// Asks it to end: `TERM` as a service manager does, `INT` as Ctrl-C does.
    pub(crate) fn signal(&self, name: &str) {
        let asked = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(asked.success());
    }

    /// Kills it, as `kill -9` does, unless it has ended by itself; whether it had not. What it wrote is in the directory.
    pub(crate) fn kill(mut self) -> (bool, TempDir) {
        let was_alive = self.child.try_wait().unwrap().is_none();
        // Fails when it ends at this very moment.
        let _ = self.child.kill();
        self.child.wait().unwrap();
        (was_alive, self.directory)
    }

    /// Waits until `is_so`.
    pub(crate) fn wait_until(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) {
        let begin = Instant::now();
        while !is_so(self) {
            if begin.elapsed() > PATIENCE {
                self.child.kill().unwrap();
                panic!("still waiting; it printed: {}{}", self.stdout(), self.stderr());
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        self.wait_until(|program| program.child.try_wait().unwrap().is_some());
        let code = self.child.wait().unwrap().code();
        let stdout = self.stdout();
        let stderr = self.stderr();
        Ended { code, stdout, stderr, directory: self.directory }
    }
}

impl Ended {
    /// The numbers that it printed.
    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The files in its directory `name` with their bytes, in the order of their names.
    pub(crate) fn files(&self, name: &str) -> Vec<(String, Vec<u8>)> {
        let mut files: Vec<_> = fs::read_dir(self.directory.path().join(name))
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
            .collect();
        files.sort();
        files
    }
}

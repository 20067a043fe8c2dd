//! Running other programs: cargo, and the examples.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// A program that does not end is killed after this time. It catches hangs; it measures nothing.
const HANG: Duration = Duration::from_secs(15 * 60);

/// One run of a program in the project's root.
///
/// Its output goes where ours goes, so that nothing which a test prints is lost; it gets no standard input.
#[derive(Debug)]
pub(crate) struct Run {
    command: Command,
    shown: String,
}

impl Run {
    /// Cargo, with `--locked`: no check may change the lockfile that it is made against.
    pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Run {
        Run::cargo_unlocked(root, &locked(arguments))
    }

    /// Cargo without `--locked`, for the subcommands that do not know it.
    pub(crate) fn cargo_unlocked(root: &Path, arguments: &[&str]) -> Run {
        let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = Command::new(program);
        command.args(arguments).current_dir(root).stdin(Stdio::null());
        Run { command, shown: format!("cargo {}", arguments.join(" ")) }
    }

    /// Another program, by its name in the path.
    pub(crate) fn program(root: &Path, program: &str, arguments: &[&str]) -> Run {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(root).stdin(Stdio::null());
        Run { command, shown: format!("{program} {}", arguments.join(" ")) }
    }

    /// Sets an environment variable, shown with the command so that it can be repeated by hand.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Run {
        self.command.env(name, value);
        let quoted = if value.contains(' ') { format!("'{value}'") } else { value.to_owned() };
        self.shown = format!("{name}={quoted} {}", self.shown);
        self
    }

    /// Runs it to its end; a status other than zero is a failure.
    pub(crate) fn check(mut self) -> Result<(), Failure> {
        self.announce();
        let status = self.command.status().map_err(|source| self.not_started(source))?;
        self.judge(status)
    }

    /// Runs it quietly and returns what it printed.
    pub(crate) fn output(mut self) -> Result<String, Failure> {
        self.command.stderr(Stdio::inherit());
        let output = self.command.output().map_err(|source| self.not_started(source))?;
        self.judge(output.status)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs it to its end, and kills it if that does not come.
    pub(crate) fn check_ends(mut self) -> Result<(), Failure> {
        self.announce();
        let mut child = self.command.spawn().map_err(|source| self.not_started(source))?;
        self.await_end(&mut child, Instant::now() + HANG)
    }

    /// Runs it until it prints a line that contains `awaited`, asks it to end as an operator would (SIGTERM),
    /// and expects a good end.
    pub(crate) fn check_ends_on_signal(mut self, awaited: &str) -> Result<(), Failure> {
        self.announce();
        let deadline = Instant::now() + HANG;
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().map_err(|source| self.not_started(source))?;
        let (found, seen) = mpsc::channel();
        if let Some(output) = child.stdout.take() {
            echo(output, awaited, found.clone());
        }
        if let Some(output) = child.stderr.take() {
            echo(output, awaited, found.clone());
        }
        // The last of the readers to reach its end of output disconnects the channel.
        drop(found);
        let found = seen.recv_timeout(HANG).is_ok();
        if found {
            terminate(child.id())?;
        } else {
            // The program has ended, closed its output, or hangs: killing covers all three.
            let _ = child.kill();
        }
        let ended = self.await_end(&mut child, deadline);
        if found { ended } else { Err(Failure::Silent { command: self.shown, awaited: awaited.to_owned() }) }
    }

    fn announce(&self) {
        println!("    $ {}", self.shown);
    }

    fn await_end(&self, child: &mut Child, deadline: Instant) -> Result<(), Failure> {
        loop {
            if let Some(status) = child.try_wait().map_err(|source| self.not_started(source))? {
                return self.judge(status);
            }
            if Instant::now() >= deadline {
                // Both only fail when the program has ended by itself meanwhile.
                let _ = child.kill();
                let _ = child.wait();
                return Err(Failure::Hung { command: self.shown.clone(), after: HANG });
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn judge(&self, status: ExitStatus) -> Result<(), Failure> {
        if status.success() { Ok(()) } else { Err(Failure::Command { command: self.shown.clone(), status }) }
    }

    fn not_started(&self, source: std::io::Error) -> Failure {
        Failure::Start { command: self.shown.clone(), source }
    }
}

/// Puts `--locked` behind the subcommand, where it also stands before a `--` that ends cargo's own arguments.
fn locked<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let mut locked = arguments.to_vec();
    locked.insert(1.min(locked.len()), "--locked");
    locked
}

/// Copies a program's output to ours to its end, and tells of lines that contain `awaited`.
fn echo(output: impl Read + Send + 'static, awaited: &str, found: mpsc::Sender<()>) {
    let awaited = awaited.to_owned();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            println!("{line}");
            if line.contains(&awaited) {
                // The receiver may be gone: it only waits for the first.
                let _ = found.send(());
            }
        }
    });
}

/// The standard library can only kill; the asking is left to `kill`, so that no unsafe code is needed here.
fn terminate(process: u32) -> Result<(), Failure> {
    let shown = format!("kill -TERM {process}");
    let status = Command::new("kill")
        .args(["-TERM", &process.to_string()])
        .status()
        .map_err(|source| Failure::Start { command: shown.clone(), source })?;
    if status.success() { Ok(()) } else { Err(Failure::Command { command: shown, status }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Run {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        Run { command, shown: format!("sh -c '{script}'") }
    }

    #[test]
    fn locked_stands_before_the_arguments_of_the_other_program() {
        assert_eq!(
            locked(&["clippy", "--", "-D", "warnings"]),
            ["clippy", "--locked", "--", "-D", "warnings"]
        );
    }

    #[test]
    fn a_variable_with_spaces_is_shown_quoted() {
        let run = shell("true").env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(run.shown, "RUSTDOCFLAGS='-D warnings' sh -c 'true'");
    }

    #[test]
    fn a_bad_exit_status_is_a_failure_that_names_the_command() {
        let failure = shell("exit 3").check().unwrap_err();
        assert_eq!(failure.to_string(), "`sh -c 'exit 3'` ended with exit status: 3");
        assert!(matches!(shell("exit 3").output(), Err(Failure::Command { .. })));
        assert!(matches!(shell("exit 3").check_ends(), Err(Failure::Command { .. })));
    }

    #[test]
    fn output_is_what_was_printed() {
        assert_eq!(shell("echo one; echo two").output().unwrap(), "one\ntwo\n");
    }

    #[test]
    fn a_program_that_waits_is_asked_to_end_once_it_is_ready() {
        let script = "trap 'exit 0' TERM; echo starting; echo ready now; while :; do sleep 0.05; done";
        shell(script).check_ends_on_signal("ready").unwrap();
    }

    #[test]
    fn a_bad_end_after_the_signal_is_a_failure() {
        let script = "trap 'exit 4' TERM; echo ready; while :; do sleep 0.05; done";
        assert!(matches!(shell(script).check_ends_on_signal("ready"), Err(Failure::Command { .. })));
    }

    #[test]
    fn a_program_that_ends_before_it_is_ready_is_a_failure() {
        assert!(matches!(shell("echo other").check_ends_on_signal("ready"), Err(Failure::Silent { .. })));
    }

    #[test]
    fn a_program_that_hangs_is_killed_and_named() {
        let mut run = shell("exec sleep 600");
        let mut child = run.command.spawn().unwrap();
        let failure = run.await_end(&mut child, Instant::now()).unwrap_err();
        assert!(failure.to_string().starts_with("`sh -c 'exec sleep 600'` had not ended"), "{failure}");
        assert!(child.try_wait().unwrap().is_some());
    }
}

//! Why a task stopped.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// A check that found something wrong, or that could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Failure {
    #[error("`{command}` ended with {status}")]
    Command { command: String, status: ExitStatus },
    #[error("`{command}` could not be run: {source}")]
    Start { command: String, source: io::Error },
    #[error("`{command}` had not ended after {} minutes and was killed", after.as_secs() / 60)]
    Hung { command: String, after: Duration },
    #[error("`{command}` ended before it had printed `{awaited}`")]
    Silent { command: String, awaited: String },
    #[error("`{command}` printed what cannot be read as {expected}: {source}")]
    Output { command: String, expected: &'static str, source: serde_json::Error },
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{rule}{}", findings.iter().map(|finding| format!("\n  - {finding}")).collect::<String>())]
    Findings { rule: &'static str, findings: Vec<String> },
    #[error("the area `{area}` failed: {reason}")]
    Area { area: &'static str, reason: Box<Failure> },
}

impl Failure {
    /// Ok when nothing was found.
    pub(crate) fn unless_empty(rule: &'static str, findings: Vec<String>) -> Result<(), Failure> {
        if findings.is_empty() { Ok(()) } else { Err(Failure::Findings { rule, findings }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_is_on_a_line_of_its_own() {
        let failure =
            Failure::unless_empty("No house is so.", vec!["first".into(), "second".into()]).unwrap_err();
        assert_eq!(failure.to_string(), "No house is so.\n  - first\n  - second");
    }
}

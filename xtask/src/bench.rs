//! The benches, built as they are measured.

use crate::failure::Failure;
use crate::project::Project;

const RELEASE: &[&str] = &["build", "--release"];

/// Builds the benches and what they measure, and runs them with these arguments.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<(), Failure> {
    let build = |what: &[&str]| project.cargo(&[RELEASE, what].concat()).check();
    build(&["-p", "corriere-examples", "--example", "order_pipeline"])?;
    build(&["-p", "corriere-benches", "--bin", "figures"])?;
    let mut run = vec!["run", "--release", "--quiet", "-p", "corriere-benches", "--bin", "figures", "--"];
    run.extend(arguments.iter().map(String::as_str));
    project.cargo(&run).check()
}

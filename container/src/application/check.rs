//! What a check of an application tells.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use super::{PlannedListener, Remark};
use crate::config::Listing;

/// What the checks of this process found that stood in for a start.
static CHECKS: Mutex<Checks> = Mutex::new(Checks { were_any: false, failed: Vec::new() });

/// An application whose configuration is right: what holds, and for whom. Shown, it is all of that, and no secret.
///
/// ```no_run
/// # fn example() -> Result<(), corriere_container::application::Error> {
/// use corriere_container::application::Application;
///
/// println!("{}", Application::check("config.toml")?);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Check {
    /// The merged configuration.
    pub configuration: Listing,
    /// The listeners that would be started, with what holds for each.
    pub listeners: Vec<PlannedListener>,
    /// The connection factories, that which is implied included.
    pub connection_factories: Vec<PlannedFactory>,
    /// All beans, in the order in which they would be made.
    pub beans: Vec<PlannedBean>,
    /// What is no mistake and worth knowing: listeners that are not started, settings that have no effect.
    pub remarks: Vec<Remark>,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { configuration, listeners, connection_factories, beans, remarks } = self;
        writeln!(f, "# The configuration, and where each value came from.\n{configuration}")?;
        writeln!(f, "# The listeners, and what holds for each.\n")?;
        if listeners.is_empty() {
            writeln!(f, "# There are none.")?;
        }
        listeners.iter().try_for_each(|listener| writeln!(f, "# {listener}"))?;
        remarks.iter().try_for_each(|remark| writeln!(f, "# {remark}"))?;
        writeln!(f, "\n# The connection factories, and where they lead.\n")?;
        connection_factories.iter().try_for_each(|factory| writeln!(f, "# {factory}"))?;
        writeln!(f, "\n# The beans, in the order in which they are made.\n")?;
        beans.iter().try_for_each(|bean| writeln!(f, "# {bean}"))
    }
}

/// A connection factory of an application that was not started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedFactory {
    /// Its name.
    pub name: String,
    /// The URL of its broker, without options and without what is secret.
    pub url: String,
}

impl fmt::Display for PlannedFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.name, self.url)
    }
}

/// A bean of an application that was not started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedBean {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_name: &'static str,
}

impl fmt::Display for PlannedBean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.name, self.type_name)
    }
}

/// What checks found that stood in for starts.
#[derive(Debug, Default)]
struct Checks {
    were_any: bool,
    /// What each of those said that failed.
    failed: Vec<String>,
}

impl Checks {
    fn note<T, E: fmt::Display>(&mut self, checked: &Result<T, E>) {
        self.were_any = true;
        self.failed.extend(checked.as_ref().err().map(ToString::to_string));
    }

    /// How the program ends, and what it says: one check that failed outweighs all that did not. `None` without checks,
    /// as then it is for `main` to say.
    fn end(&self) -> Option<Result<(), &[String]>> {
        self.were_any.then(|| if self.failed.is_empty() { Ok(()) } else { Err(&*self.failed) })
    }
}

/// Notes a check that stood in for a start.
pub(super) fn note<T, E: fmt::Display>(checked: &Result<T, E>) {
    CHECKS.lock().unwrap_or_else(PoisonError::into_inner).note(checked);
}

/// How the program ends where its starts were checks, whatever its `main` made of them; what failed is said here.
pub(super) fn exit_code() -> Option<ExitCode> {
    let checks = CHECKS.lock().unwrap_or_else(PoisonError::into_inner);
    let Err(failed) = checks.end()? else { return Some(ExitCode::SUCCESS) };
    for error in failed {
        // Whoever closes the pipe still has the exit code.
        _ = writeln!(std::io::stderr(), "Error: {error}");
    }
    Some(ExitCode::FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_check_that_fails_outweighs_all_others() {
        let (right, wrong) = (Ok::<_, &str>(()), Err::<(), _>("wrong"));
        let mut checks = Checks::default();
        assert_eq!(checks.end(), None);
        checks.note(&right);
        assert_eq!(checks.end(), Some(Ok(())));
        checks.note(&wrong);
        checks.note(&right);
        assert_eq!(checks.end(), Some(Err(&["wrong".to_owned()][..])));
    }
}

//! What a check of an application tells.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use super::PlannedListener;
use crate::config::Listing;

/// Whether a start in this process was only a check, and nothing was wrong.
static WAS_RIGHT: AtomicBool = AtomicBool::new(false);

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
    /// What is no mistake and worth knowing: listeners that are not started, settings that have no effect.
    pub remarks: Vec<String>,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { configuration, listeners, remarks } = self;
        writeln!(f, "# The configuration, and where each value came from.\n{configuration}")?;
        writeln!(f, "# The listeners, and what holds for each.\n")?;
        if listeners.is_empty() {
            writeln!(f, "# There are none.")?;
        }
        listeners.iter().try_for_each(|listener| writeln!(f, "# {listener}"))?;
        remarks.iter().try_for_each(|remark| writeln!(f, "# {remark}"))
    }
}

/// Notes that a start was only a check, and nothing was wrong.
pub(super) fn note_right() {
    WAS_RIGHT.store(true, Ordering::Relaxed);
}

/// Whether a start in this process was only a check, and nothing was wrong.
pub(super) fn was_right() -> bool {
    WAS_RIGHT.load(Ordering::Relaxed)
}

//! What `#[corriere::main]` becomes.

use std::io::IsTerminal;
use std::process::{ExitCode, Termination};
use std::time::Duration;

use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::check;

/// Runs a program's async `main` to its end, in a runtime of several threads, its log on standard error. Where its starts were
/// only checks, the exit code is theirs: a good end when none of them found anything wrong.
///
/// # Panics
/// When the operating system gives no threads for the runtime.
pub fn run_main<F: Future<Output: Termination>>(main: F) -> ExitCode {
    log_to_standard_error();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap_or_else(|error| panic!("the runtime could not be started: {error}"));
    let output = runtime.block_on(main);
    // The application has had its time to stop; a blocking call that never returns must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    // Where starts were checks, `main` cannot know of all that they found, and says at most one error of it.
    check::exit_code().unwrap_or_else(|| output.report())
}

fn log_to_standard_error() {
    let wanted = std::env::var("RUST_LOG").unwrap_or_default();
    let level = level(&wanted);
    let subscriber = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_max_level(level.unwrap_or(LevelFilter::INFO))
        // A log that cannot be written, to a full disk or a closed pipe, must not end the program: it would be said there.
        .log_internal_errors(false)
        .event_format(Line)
        .finish();
    // This fails where there is a subscriber already, which is to be kept.
    let is_ours = tracing::subscriber::set_global_default(subscriber).is_ok();
    if is_ours && level.is_none() {
        tracing::warn!(
            "RUST_LOG is `{wanted}`; expected error, warn, info, debug, trace or off, so it is info"
        );
    }
}

/// An event in one line, without the fields of the spans around it: those are for machines, and say it a second time.
struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        SystemTime.format_time(&mut writer)?;
        write!(writer, " {:>5} ", event.metadata().level())?;
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// The level that `RUST_LOG` asks for, information where it asks for nothing; `None` when it asks for no level.
fn level(wanted: &str) -> Option<LevelFilter> {
    match wanted.trim() {
        // To the parser an empty text is the level of errors.
        "" => Some(LevelFilter::INFO),
        wanted => wanted.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_word_failures_are_logged() {
        assert_eq!(level(""), Some(LevelFilter::INFO));
        assert_eq!(level(" "), Some(LevelFilter::INFO));
        assert_eq!(level("DEBUG"), Some(LevelFilter::DEBUG));
        assert_eq!(level("off"), Some(LevelFilter::OFF));
        assert_eq!(level("parcels=debug"), None);
    }
}

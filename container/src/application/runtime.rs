//! What `#[corriere::main]` becomes.

use std::time::Duration;

use tracing::level_filters::LevelFilter;

/// Runs a program's async `main` to its end, in a runtime of several threads, its log on standard error.
///
/// # Panics
/// When the operating system gives no threads for the runtime.
pub fn run_main<F: Future>(main: F) -> F::Output {
    log_to_standard_error();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap_or_else(|error| panic!("the runtime could not be started: {error}"));
    let output = runtime.block_on(main);
    // The application has had its time to stop; a blocking call that never returns must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    output
}

fn log_to_standard_error() {
    let wanted = std::env::var("RUST_LOG").unwrap_or_default();
    let level = wanted.trim().parse::<LevelFilter>();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(level.as_ref().map_or(LevelFilter::INFO, |level| *level))
        .finish();
    // This fails where there is a subscriber already, which is to be kept.
    let is_ours = tracing::subscriber::set_global_default(subscriber).is_ok();
    if is_ours && level.is_err() && !wanted.is_empty() {
        tracing::warn!(
            "RUST_LOG is `{wanted}`; expected error, warn, info, debug, trace or off, so it is info"
        );
    }
}

//! What the measuring processes do: one measurement, one line of JSON.

mod broker;
mod limits;
mod load;
mod payload;
mod producers;
mod receiver;
mod restart;
mod serve;
mod start;

use clap::ValueEnum;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::arguments::Asked;
use crate::failure::Failure;
use crate::limits::Variant;
use crate::sides::Line;
use producers::Pattern;

/// What can be measured in a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    P1,
    P64,
    Transactions,
    EndToEnd,
    #[value(name = "skeleton-p1-thread")]
    SkeletonP1Thread,
    #[value(name = "skeleton-p1-leader")]
    SkeletonP1Leader,
    #[value(name = "skeleton-p64-thread")]
    SkeletonP64Thread,
    #[value(name = "skeleton-p64-leader")]
    SkeletonP64Leader,
    PacedSyncs,
    /// Sends until it is killed, to a consumer.
    LoadConsumed,
    /// Sends until it is killed, to nobody.
    LoadWaiting,
    /// Starts on what is there, and is over with the first message.
    FirstMessage,
    /// Listens on a free port until it is killed.
    Serve,
    /// Starts an application with many listeners and beans.
    Start,
}

/// Messages, and syncs, a second where the rate is fixed.
pub(crate) const PACE: f64 = 1_000.0;

impl What {
    /// Its name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Whether it measures the disk, not the broker.
    pub(crate) fn is_limit(self) -> bool {
        use What::{PacedSyncs, SkeletonP1Leader, SkeletonP1Thread, SkeletonP64Leader, SkeletonP64Thread};
        matches!(
            self,
            SkeletonP1Thread | SkeletonP1Leader | SkeletonP64Thread | SkeletonP64Leader | PacedSyncs
        )
    }
}

/// Makes the measurement and prints its line.
pub(crate) fn run(asked: &Asked) -> Result<(), Failure> {
    let line = match asked.what {
        What::SkeletonP1Thread => limits::skeleton(asked, 1, Variant::Thread)?,
        What::SkeletonP1Leader => limits::skeleton(asked, 1, Variant::Leader)?,
        What::SkeletonP64Thread => limits::skeleton(asked, 64, Variant::Thread)?,
        What::SkeletonP64Leader => limits::skeleton(asked, 64, Variant::Leader)?,
        What::PacedSyncs => limits::paced_syncs(asked, PACE)?,
        What::P1 => load("vm-persistent-sync-p1", asked, 1, Pattern::Confirmed)?,
        What::P64 => load("vm-persistent-sync-p64", asked, 64, Pattern::Confirmed)?,
        What::Transactions => load("vm-transacted-100-sync", asked, 1, Pattern::Transactions(100))?,
        What::EndToEnd => load("latency-vm-persistent-sync-1000", asked, 1, Pattern::Paced(PACE))?,
        What::LoadConsumed => return runtime()?.block_on(restart::load(asked, true)),
        What::LoadWaiting => return runtime()?.block_on(restart::load(asked, false)),
        What::FirstMessage => return runtime()?.block_on(restart::first_message(asked)),
        What::Start => runtime()?.block_on(start::measure())?,
        What::Serve => return runtime()?.block_on(serve::serve(asked)),
    };
    println!("{}", Value::Object(line));
    Ok(())
}

fn load(scenario: &str, asked: &Asked, producers: u32, pattern: Pattern) -> Result<Line, Failure> {
    runtime()?.block_on(load::measure(scenario, asked, producers, pattern))
}

/// The runtime that a program with `#[corriere::main]` has.
fn runtime() -> Result<Runtime, Failure> {
    Ok(Builder::new_multi_thread().enable_all().build()?)
}

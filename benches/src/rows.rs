//! The rows of the table: what is measured, against what, and the bar.

use crate::measure::What;
use crate::sides::Side;

/// One row.
#[derive(Debug)]
pub(crate) struct Row {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) ours: Side,
    /// What it is compared with; the better one of several counts.
    pub(crate) others: &'static [Side],
    pub(crate) bar: Bar,
}

/// What is compared, and what it should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bar {
    /// Our rate to the best other one's, each as a share of the raw disk around it: at least.
    Share(f64),
    /// Our rate to the other one's: at least.
    Times(f64),
    /// Microseconds by which our median time is above the other one's: at most.
    Above(f64),
    /// Our rate to that of the raw disk: at least.
    PerSync(f64),
    /// Seconds: at most.
    Seconds(f64),
    /// Our rate to the other one's, as it is.
    None,
}

/// In the order of the table.
pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "p1",
        what: "one producer, confirmed, 1 KiB, against the skeleton of a journal",
        ours: Side::Measure(What::P1),
        others: &[Side::Measure(What::SkeletonP1Thread), Side::Measure(What::SkeletonP1Leader)],
        bar: Bar::Share(0.8),
    },
    Row {
        name: "p64",
        what: "64 producers, confirmed, 1 KiB, one queue, against the skeleton of a journal",
        ours: Side::Measure(What::P64),
        others: &[Side::Measure(What::SkeletonP64Thread), Side::Measure(What::SkeletonP64Leader)],
        bar: Bar::Share(0.5),
    },
    Row {
        name: "transactions",
        what: "transactions of 100 × 1 KiB, against ActiveMQ",
        ours: Side::Measure(What::Transactions),
        others: &[Side::ActiveMq("vm-transacted-100-sync")],
        bar: Bar::Times(5.0),
    },
    Row {
        name: "activemq-p64",
        what: "64 producers, confirmed, 1 KiB, against ActiveMQ",
        ours: Side::Measure(What::P64),
        others: &[Side::ActiveMq("vm-persistent-sync-p64")],
        bar: Bar::Times(20.0),
    },
    Row {
        name: "end-to-end",
        what: "end to end at 1,000 messages/s, against a sync at the same rate",
        ours: Side::Measure(What::EndToEnd),
        others: &[Side::Measure(What::PacedSyncs)],
        bar: Bar::Above(150.0),
    },
    Row {
        name: "orders",
        what: "orders of order_pipeline per sync of the raw disk",
        ours: Side::OrderPipeline,
        others: &[],
        bar: Bar::PerSync(0.5),
    },
    Row {
        name: "restart",
        what: "restart after kill -9 under load that a consumer takes, to the first delivery",
        ours: Side::Restart { consumed: true },
        others: &[],
        bar: Bar::Seconds(2.0),
    },
    Row {
        name: "restart-waiting",
        what: "restart after kill -9 under load that nobody takes, to the first delivery",
        ours: Side::Restart { consumed: false },
        others: &[],
        bar: Bar::Seconds(2.0),
    },
    Row {
        name: "start",
        what: "start of an application with 200 listeners, 50 beans and a broker in memory",
        ours: Side::Measure(What::Start),
        others: &[],
        bar: Bar::Seconds(0.05),
    },
];

macro_rules! wire_rows {
    ($($scenario:literal,)*) => {
        /// The same client over OpenWire, against ActiveMQ and against us, instead of the table.
        pub(crate) const WIRE_ROWS: &[Row] = &[
            $(Row {
                name: $scenario,
                what: $scenario,
                ours: Side::Served($scenario),
                others: &[Side::ActiveMq($scenario)],
                bar: Bar::None,
            },)*
        ];
    };
}

wire_rows! {
    "tcp-nonpersistent-1k-p1",
    "tcp-nonpersistent-1k-p8",
    "tcp-nonpersistent-1k-p64",
    "tcp-nonpersistent-4k-p1",
    "tcp-nonpersistent-4k-p8",
    "tcp-nonpersistent-4k-p64",
    "tcp-persistent-sync-1k-p1",
    "tcp-persistent-sync-1k-p8",
    "tcp-persistent-sync-1k-p64",
    "tcp-persistent-sync-4k-p1",
    "tcp-persistent-sync-4k-p8",
    "tcp-persistent-sync-4k-p64",
    "tcp-persistent-sync-1k-p8-c8",
    "tcp-persistent-sync-1k-p64-c64",
    "tcp-persistent-sync-4k-p64-c64",
}

/// The names of all rows.
pub(crate) fn names() -> Vec<&'static str> {
    ROWS.iter().chain(WIRE_ROWS).map(|row| row.name).collect()
}

impl Bar {
    /// Whether a figure is as good as it should be.
    pub(crate) fn is_held_by(self, figure: f64) -> bool {
        match self {
            Self::Share(least) | Self::Times(least) | Self::PerSync(least) => figure >= least,
            Self::Above(most) | Self::Seconds(most) => figure <= most,
            Self::None => true,
        }
    }
}

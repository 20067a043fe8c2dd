//! The disk's own figures, in the shape of lines.

use std::time::Duration;

use serde_json::json;

use crate::arguments::Asked;
use crate::failure::Failure;
use crate::limits::{Variant, group_commit, paced};
use crate::sides::Line;
use crate::statistics::percentile_us;

pub(super) fn skeleton(asked: &Asked, senders: usize, variant: Variant) -> Result<Line, Failure> {
    let time = Duration::from_secs_f64(asked.seconds);
    let mut measured = group_commit(&asked.directory, senders, variant, time)?;
    let (appends, seconds) = (measured.times.len(), measured.elapsed.as_secs_f64());
    let mut line = line(&format!("group-commit-1k-p{senders}"), &mut measured.times, seconds);
    line.insert("variant".to_owned(), json!(format!("writer: {variant:?}").to_lowercase()));
    line.insert("senders".to_owned(), json!(senders));
    line.insert("avg_batch".to_owned(), json!(appends as f64 / measured.batches as f64));
    line.insert("syncs_per_s".to_owned(), json!(measured.batches as f64 / seconds));
    Ok(line)
}

pub(super) fn paced_syncs(asked: &Asked, rate: f64) -> Result<Line, Failure> {
    let mut times = paced(&asked.directory, rate, Duration::from_secs_f64(asked.seconds))?;
    Ok(line(&format!("fdatasync-paced-{rate:.0}"), &mut times, asked.seconds))
}

fn line(limit: &str, times: &mut [u64], seconds: f64) -> Line {
    let mut line = Line::new();
    line.insert("limit".to_owned(), json!(limit));
    line.insert("ops".to_owned(), json!(times.len()));
    line.insert("seconds".to_owned(), json!(seconds));
    line.insert("per_s".to_owned(), json!(times.len() as f64 / seconds));
    line.insert("p50_us".to_owned(), json!(percentile_us(times, 0.5)));
    line.insert("p99_us".to_owned(), json!(percentile_us(times, 0.99)));
    line
}

//! Numbers of many.

/// The value below which so large a part (0 to 1) of the times lie, in microseconds; zero of none. Sorts them.
pub(crate) fn percentile_us(times: &mut [u64], part: f64) -> f64 {
    if times.is_empty() {
        return 0.0;
    }
    times.sort_unstable();
    let index = (times.len() as f64 * part) as usize;
    times[index.min(times.len() - 1)] as f64 / 1_000.0
}

/// The middle one; of an even number the mean of the two in the middle; `None` of none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        length if length % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_whatever_the_order() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median([]), None);
    }

    #[test]
    fn percentiles_are_of_the_sorted_times_and_in_microseconds() {
        let mut times: Vec<u64> = (1..=100).rev().map(|time| time * 1_000).collect();
        assert!((percentile_us(&mut times, 0.5) - 51.0).abs() < 1e-9);
        assert!((percentile_us(&mut times, 1.0) - 100.0).abs() < 1e-9);
        assert!(percentile_us(&mut [], 0.5).abs() < 1e-9);
    }
}

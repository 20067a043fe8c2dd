//! The known name that a wrong one is nearest to.

/// What is less alike than this would only mislead. In a name of three letters one may be wrong.
const ALIKE: f64 = 0.6;

/// Comparing takes more time the longer a text is, and the text may be a stranger's.
const COMPARED: usize = 128;

/// The candidate that `name` was most likely meant to be, if any is near enough to be helpful. Of names with dots only what is
/// behind the dots that they begin with in common is compared, as all that have a long beginning in common are alike.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > COMPARED {
        return None;
    }
    candidates
        .into_iter()
        .map(|candidate| (likeness(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness > ALIKE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
}

fn likeness(mut name: &str, mut candidate: &str) -> f64 {
    while let (Some((first, rest)), Some((same, candidate_rest))) =
        (name.split_once('.'), candidate.split_once('.'))
        && first == same
    {
        (name, candidate) = (rest, candidate_rest);
    }
    strsim::normalized_damerau_levenshtein(name, candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = [
        "jms.clientID",
        "jms.prefetchPolicy.queuePrefetch",
        "jms.prefetchPolicy.topicPrefetch",
        "jms.redeliveryPolicy.maximumRedeliveries",
        "tcp",
    ];

    #[test]
    fn a_slip_is_seen_wherever_it_is() {
        for (name, meant) in [
            ("jms.clientId", NAMES[0]),
            ("jms.prefetchPolicy.queuePrefech", NAMES[1]),
            ("jms.prefetchpolicy.topicPrefetch", NAMES[2]),
            ("jms.prefetchPolcy.topicPrefetch", NAMES[2]),
            ("jmx.redeliveryPolicy.maximumRedeliveries", NAMES[3]),
            ("jms.redeliveryPolicy.maxRedeliveries", NAMES[3]),
            ("tpc", NAMES[4]),
            ("tcpp", NAMES[4]),
            ("TC", NAMES[4]),
        ] {
            assert_eq!(nearest(name, NAMES), Some(meant), "{name}");
        }
    }

    #[test]
    fn what_has_only_its_beginning_in_common_is_not_near() {
        let long = "jms.clientID".repeat(100_000);
        for name in ["jms.foo", "jms.prefetchPolicy.foo", "jms.", "", "ssl", "http", &long] {
            assert_eq!(nearest(name, NAMES), None, "{name}");
        }
    }
}

//! The known name that a wrong one is nearest to.

/// The candidate that `name` was most likely meant to be, if any is near enough to be helpful.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let lower = name.to_lowercase();
    let likeness = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let similarity = strsim::jaro_winkler(&lower, &candidate);
        // One slip in a short name makes it little similar.
        let is_slip = lower.len() > 2 && strsim::osa_distance(&lower, &candidate) == 1;
        // `SESSION_TRANSACTED`, as it is called elsewhere.
        let is_a_word_of_it = lower.split('_').any(|word| word == candidate);
        if is_slip || is_a_word_of_it { similarity.max(0.9) } else { similarity }
    };
    candidates
        .into_iter()
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_the_name_is_near_wherever_it_stands() {
        let modes = ["auto", "client", "dups_ok", "individual", "transacted", "manual"];
        for (name, meant) in [
            ("SESSION_TRANSACTED", Some("transacted")),
            ("session_transacted", Some("transacted")),
            ("AUTO_ACKNOWLEDGE", Some("auto")),
            ("clent", Some("client")),
            ("session", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, modes).as_deref(), meant, "{name}");
        }
    }
}

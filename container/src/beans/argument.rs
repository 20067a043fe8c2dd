//! What is known of an argument before it is made.

use super::BeanRequest;

/// An argument of a listener or of a bean's constructor, and the beans that it asks for.
#[derive(Clone, Copy, Debug)]
pub struct BeanArgument {
    /// Its name, without leading underscores; `None` where it is taken apart, as `Payload(order)` is.
    pub name: Option<&'static str>,
    /// The name in `#[bean("name")]`.
    pub bean: Option<&'static str>,
    /// The types of the beans; none where it is something else.
    pub requests: &'static [BeanRequest],
}

/// Which of those who could be meant is.
pub(super) enum Choice<T> {
    None,
    One(T),
    /// Several, by their names.
    Several(Vec<String>),
}

/// The rule for beans that are asked for by type: the one with the argument's name, or the only one.
pub(super) fn choose<'a, T>(
    argument: Option<&str>,
    candidates: impl Iterator<Item = (&'a str, T)>,
) -> Choice<T> {
    let mut first = None;
    // Nothing is allocated where there is only one, as each run of a listener asks again.
    let mut others = Vec::new();
    for (name, candidate) in candidates {
        if argument == Some(name) {
            return Choice::One(candidate);
        }
        match first {
            None => first = Some((name, candidate)),
            Some(_) => others.push(name),
        }
    }
    match first {
        None => Choice::None,
        Some((_, only)) if others.is_empty() => Choice::One(only),
        Some((name, _)) => Choice::Several(std::iter::once(name).chain(others).map(str::to_owned).collect()),
    }
}

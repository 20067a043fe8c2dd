//! The options behind a destination's name.

use super::DestinationError;
use crate::text::shown;

/// The options that stood behind a name. One that is accepted is one that has an effect.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    pub(super) consumer_prefetch: Option<u32>,
}

const CONSUMER_PREFETCH: &str = "consumer.prefetchSize";

/// How many messages may be sent ahead to a consumer at most: ActiveMQ's bound.
pub const MAXIMUM_PREFETCH: u32 = 32_767;

/// Options of ActiveMQ that would mean something here, and do not yet. Better refused than without effect.
const NOT_YET: [&str; 8] = [
    "consumer.exclusive",
    "consumer.priority",
    "consumer.selector",
    "consumer.noLocal",
    "consumer.retroactive",
    "consumer.dispatchAsync",
    "consumer.maximumPendingMessageLimit",
    "producer.windowSize",
];

impl Options {
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, DestinationError> {
        let mut options = Self::default();
        for part in text.split('&') {
            let (option, value) = part.split_once('=').unwrap_or((part, ""));
            if option == CONSUMER_PREFETCH {
                let refuse = |expected| DestinationError::OptionValue {
                    name: name.to_owned(),
                    option: CONSUMER_PREFETCH,
                    value: shown(value),
                    expected,
                };
                let Ok(prefetch @ 0..=MAXIMUM_PREFETCH) = value.parse() else {
                    return Err(refuse("a number of messages from 0 to 32767"));
                };
                if options.consumer_prefetch.replace(prefetch).is_some() {
                    return Err(refuse("the option only once"));
                }
            } else if let Some(option) = NOT_YET.into_iter().find(|known| *known == option) {
                return Err(DestinationError::OptionNotYet { name: name.to_owned(), option });
            } else {
                return Err(DestinationError::UnknownOption {
                    name: name.to_owned(),
                    option: shown(option),
                    nearest: nearest_option(option),
                });
            }
        }
        Ok(options)
    }
}

fn nearest_option(option: &str) -> Option<&'static str> {
    /// What is less alike than this would only mislead.
    const ALIKE: f64 = 0.5;
    /// Comparing takes more time the longer the text is, and the text may be a stranger's.
    const COMPARED: usize = 64;
    if option.len() > COMPARED {
        return None;
    }
    let last = |option: &str| option.rsplit('.').next().unwrap_or_default().to_lowercase();
    let wanted = last(option);
    NOT_YET
        .into_iter()
        .chain([CONSUMER_PREFETCH])
        .map(|known| (strsim::normalized_damerau_levenshtein(&wanted, &last(known)), known))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::Destination;

    #[test]
    fn a_mistyped_option_is_refused_with_the_nearest_known_one() {
        let error = |text: &str| text.parse::<Destination>().unwrap_err().to_string();
        for option in ["consumer.prefetchsize", "consumer.prefetch", "prefetchSize", "consumer.prefechSize"] {
            assert_eq!(
                error(&format!("queue://q?{option}=1")),
                format!(
                    "destination `q` has the unknown option `{option}`; did you mean `consumer.prefetchSize`?"
                )
            );
        }
        assert!(error("q?producer.windowsize=1").contains("`producer.windowSize`"));
        assert_eq!(error("q?zzz=1"), "destination `q` has the unknown option `zzz`");
        assert_eq!(error("q?"), "destination `q` has the unknown option ``");
    }

    #[test]
    fn an_option_that_would_have_no_effect_yet_is_refused() {
        for option in NOT_YET {
            assert_eq!(
                Destination::queue(&format!("q?consumer.prefetchSize=1&{option}=true")),
                Err(DestinationError::OptionNotYet { name: "q".to_owned(), option })
            );
        }
    }

    #[test]
    fn an_option_needs_a_value_that_can_be_read_and_stands_there_once() {
        for options in [
            "consumer.prefetchSize",
            "consumer.prefetchSize=",
            "consumer.prefetchSize=-1",
            "consumer.prefetchSize=ten",
            "consumer.prefetchSize=99999999999",
            "consumer.prefetchSize=1&consumer.prefetchSize=2",
        ] {
            assert!(
                matches!(
                    Destination::queue(&format!("q?{options}")),
                    Err(DestinationError::OptionValue { option: CONSUMER_PREFETCH, .. })
                ),
                "{options}"
            );
        }
    }
}

//! The type names in a configuration and what they stand for.

use corriere_templates::ConverterType;

use crate::beans::BeanType;
use crate::config::{ConfigError, Setting, unknown_name};

/// Checks that a type name in the configuration is that of exactly one type; `registered` are all, by name and Rust type.
pub(super) fn check_type_name(
    what: &'static str,
    named: &Setting<String>,
    registered: impl Iterator<Item = (&'static str, &'static str)>,
) -> Result<(), ConfigError> {
    let registered: Vec<_> = registered.collect();
    let mut rust_types: Vec<_> = registered
        .iter()
        .filter(|(name, _)| *name == named.value)
        .map(|(_, rust_type)| format!("`{rust_type}`"))
        .collect();
    // The linker's order means nothing.
    rust_types.sort();
    match rust_types.len() {
        1 => Ok(()),
        0 => {
            let mut known: Vec<_> = registered.iter().map(|(name, _)| (*name).to_owned()).collect();
            known.sort();
            known.dedup();
            Err(unknown_name(what, named, known))
        }
        _ => {
            let expected = || format!("the name of one {what}; it is that of {}", rust_types.join(" and "));
            Err(named.place.error(expected, |place| ConfigError::SameTypeName {
                place,
                what,
                name: named.value.clone(),
                rust_types: rust_types.clone(),
            }))
        }
    }
}

/// The names of all types of message converters, with their Rust types.
pub(super) fn converter_types() -> impl Iterator<Item = (&'static str, &'static str)> {
    let plain = ConverterType::all().map(|found| (found.name, (found.rust_type)()));
    let beans = BeanType::all().filter(|found| found.is_converter);
    plain.chain(beans.map(|found| (found.name, (found.bean.type_name)())))
}

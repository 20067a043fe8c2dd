//! What is wrong with how beans need each other.

use std::fmt;

use corriere_core::ConnectionFactory;
use corriere_templates::{JmsTemplate, MessageConverter};
use thiserror::Error;

use super::BeanRequest;
use crate::config::{Origin, Place, known_names};

/// What is wrong with how beans need each other, told before any of them is made.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum WiringError {
    /// Beans that need each other, so that none could be made first.
    #[error("{}; none of them can be made before the others", cycle(path))]
    Cycle {
        /// Each of them, with what needs the next one; the last needs the first.
        path: Vec<WiringStep>,
    },
    /// No bean has the type that is needed.
    #[error("{}, and there is none; {}", missing(path, type_name), remedy(type_name, bean_types))]
    Missing {
        /// From who needs it in the end to who needs it directly.
        path: Vec<WiringStep>,
        /// The type.
        type_name: &'static str,
        /// The registered bean types that would make one.
        bean_types: Vec<&'static str>,
    },
    /// Several beans have the type, and nothing says which one is meant.
    #[error(
        "{owner}: {needed_for} could be any of {} beans of the type `{type_name}`: {}; name the argument after one of them, \
         or put `#[bean(\"{}\")]` on it",
        names.len(),
        quoted(names),
        names.first().map_or("…", String::as_str)
    )]
    Ambiguous {
        /// Who needs it.
        owner: BeanOwner,
        /// What for.
        needed_for: NeededFor,
        /// The type.
        type_name: &'static str,
        /// The beans of that type.
        names: Vec<String>,
    },
    /// No bean has the name that is asked for.
    #[error(
        "{owner}: {needed_for} asks for the bean `{name}`, and there is none of that name{}; of the type `{type_name}` {}",
        nearest.as_ref().map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default(),
        known_names("there is", known)
    )]
    NoSuchName {
        /// Who needs it.
        owner: BeanOwner,
        /// What for.
        needed_for: NeededFor,
        /// The name.
        name: String,
        /// The type that it should have.
        type_name: &'static str,
        /// The bean whose name is nearest to it.
        nearest: Option<String>,
        /// The beans of that type.
        known: Vec<String>,
    },
    /// The bean that is asked for by name is of another type.
    #[error("{owner}: {needed_for} asks for the bean `{name}`, which is a `{found}`, not a `{expected}`")]
    OtherType {
        /// Who needs it.
        owner: BeanOwner,
        /// What for.
        needed_for: NeededFor,
        /// The name.
        name: String,
        /// The type that it should have.
        expected: &'static str,
        /// The type that it has.
        found: &'static str,
    },
    /// Beans that have the same name.
    #[error("{} beans are named `{name}`: {}; {}", owners.len(), listed(owners), rename(owners))]
    SameName {
        /// The name.
        name: String,
        /// All that have it.
        owners: Vec<BeanOwner>,
    },
}

impl WiringError {
    /// What stands at the places of the configuration that it names, to follow it.
    pub(crate) fn excerpts(&self) -> String {
        let places: Vec<_> = match self {
            Self::Cycle { path } | Self::Missing { path, .. } => path
                .iter()
                .filter_map(|step| step.needed_for.place().or_else(|| step.owner.place()))
                .collect(),
            Self::Ambiguous { owner, needed_for, .. }
            | Self::NoSuchName { owner, needed_for, .. }
            | Self::OtherType { owner, needed_for, .. } => {
                needed_for.place().or_else(|| owner.place()).into_iter().collect()
            }
            Self::SameName { owners, .. } => owners.iter().filter_map(BeanOwner::place).collect(),
        };
        places.into_iter().map(|place| place.excerpt().to_string()).collect()
    }
}

/// Who needs beans, or is one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BeanOwner {
    /// What a table of the configuration, or one of its keys, asks for.
    Configuration(Place),
    /// What the program hands over under a name.
    Program {
        /// The name.
        name: String,
    },
    /// What the program hands over and what is named after its type.
    NamedAfterType {
        /// The name.
        name: String,
    },
    /// A listener.
    Listener {
        /// Its id.
        id: String,
    },
}

impl BeanOwner {
    /// Where it stands in the configuration.
    fn place(&self) -> Option<&Place> {
        match self {
            Self::Configuration(place) => Some(place),
            Self::Program { .. } | Self::NamedAfterType { .. } | Self::Listener { .. } => None,
        }
    }
}

impl fmt::Display for BeanOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration(place) => place.fmt(f),
            Self::Program { name } => write!(f, "the program's `{name}`"),
            Self::NamedAfterType { name } => {
                write!(f, "the program's `{name}`, which is named after its type")
            }
            Self::Listener { id } => write!(f, "listener `{id}`"),
        }
    }
}

/// What somebody needs a bean for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NeededFor {
    /// An argument of a constructor or of a listener.
    Argument {
        /// Its name, if it has one.
        name: Option<&'static str>,
        /// Which one it is, from 1.
        number: usize,
    },
    /// A key of the configuration.
    Key {
        /// Its name.
        name: &'static str,
        /// Where it stands, which for a listener may be in the table of its container.
        place: Place,
    },
}

impl NeededFor {
    /// The name of the argument.
    pub(super) fn argument(&self) -> Option<&'static str> {
        match self {
            Self::Argument { name, .. } => *name,
            Self::Key { .. } => None,
        }
    }

    /// Where it stands in the configuration.
    fn place(&self) -> Option<&Place> {
        match self {
            Self::Argument { .. } => None,
            Self::Key { place, .. } => Some(place),
        }
    }
}

impl fmt::Display for NeededFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument { name: Some(name), .. } => write!(f, "its argument `{name}`"),
            Self::Argument { name: None, number } => write!(f, "its argument {number}"),
            Self::Key { name, place } => match place.origin() {
                Origin::Code => write!(f, "its `{name}`"),
                origin => write!(f, "its `{name}` ({origin})"),
            },
        }
    }
}

/// Somebody on the way to a bean, and what the next one is needed for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WiringStep {
    /// Who it is.
    pub owner: BeanOwner,
    /// What for.
    pub needed_for: NeededFor,
}

fn cycle(path: &[WiringStep]) -> String {
    let following = path.iter().skip(1).chain(path.first());
    let steps = path.iter().zip(following).enumerate().map(|(index, (step, next))| {
        let subject = if index == 0 { format!("{} needs", step.owner) } else { ", which needs".to_owned() };
        format!("{subject} {} for {}", next.owner, step.needed_for)
    });
    steps.collect()
}

fn missing(path: &[WiringStep], type_name: &str) -> String {
    let following = path.iter().skip(1).map(|step| step.owner.to_string());
    let steps = path.iter().zip(following.chain([format!("a bean of the type `{type_name}`")])).enumerate();
    let steps = steps.map(|(index, (step, next))| {
        let subject = if index == 0 { format!("{} needs", step.owner) } else { ", which needs".to_owned() };
        format!("{subject} {next} for {}", step.needed_for)
    });
    steps.collect()
}

/// How there would be a bean of that type.
fn remedy(type_name: &str, bean_types: &[&str]) -> String {
    let is = |request: BeanRequest| (request.type_name)() == type_name;
    if is(BeanRequest::of::<JmsTemplate>()) {
        return "add `[templates.NAME]`".to_owned();
    }
    if is(BeanRequest::of::<ConnectionFactory>()) {
        return "add `[connection_factories.NAME]` with its `url`".to_owned();
    }
    if is(BeanRequest::of::<dyn MessageConverter>()) {
        return "add `[message_converters.NAME]` with its `type`".to_owned();
    }
    if bean_types.is_empty() {
        return "no bean type makes one, so hand it over with `.bean(value)`, or put `#[corriere::bean(type = \"…\")]` on its \
                constructor"
            .to_owned();
    }
    let types: Vec<_> = bean_types.iter().map(|name| format!("`type = \"{name}\"`")).collect();
    format!("add `[beans.NAME]` with {}", types.join(" or "))
}

fn rename(owners: &[BeanOwner]) -> &'static str {
    let named_after_type = owners.iter().any(|owner| matches!(owner, BeanOwner::NamedAfterType { .. }));
    if named_after_type {
        "give one of them another name, that of the program with `.named_bean(\"…\", value)`"
    } else {
        "give one of them another name"
    }
}

fn listed(owners: &[BeanOwner]) -> String {
    owners.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

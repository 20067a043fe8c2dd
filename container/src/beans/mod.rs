//! Beans: the values that an application makes once and hands to its listeners and to each other, by type or by name.
//!
//! Before any is made, `graph` settles who gets which and in which order; `making` then calls the constructors, and
//! `registry` keeps what they made.

mod argument;
mod bean_type;
mod closing;
mod constructor;
mod error;
mod graph;
mod made;
mod making;
mod names;
mod registry;
mod settings;
mod settings_error;
mod settings_reader;
mod wiring_error;

use std::any::{TypeId, type_name};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

pub use argument::BeanArgument;
pub use bean_type::{AsConverter, BeanType, ConverterProbe, NoConverter};
pub use closing::{CloseError, CloseKind, CloseProbe, Closed, ClosedAtOnce, Closing, IntoClosed, NotAsync};
pub use constructor::{
    ArgumentBeans, ArgumentProbe, BeanConstructor, BeanWay, ChosenBeanWay, ConstructorArgument,
    ConstructorOutput, IntoBean, NoBean, NoConfiguration, via,
};
pub use error::{BeanBuildError, BeanError};
pub(crate) use graph::{Need, Node, User, Wiring, wire};
pub use made::MadeBean;
pub(crate) use making::{Recipe, Source, make, prepare};
pub(crate) use names::name_of_type;
pub use registry::{BeanName, Beans};
pub use settings::BeanSettings;
pub(crate) use settings::KeyPlaces;
pub use wiring_error::{BeanOwner, NeededFor, WiringError, WiringStep};

/// A bean as its users hold it. Clones are the same bean.
///
/// As an argument of a listener or of another bean's constructor, `Bean<T>` is found by its type before the application
/// starts. Where several beans have the type, that one is taken whose name is the argument's; `#[bean("name")]` on the
/// argument asks by name. Every message converter can also be had as `Bean<dyn MessageConverter>`.
pub struct Bean<T: ?Sized>(Arc<T>);

impl<T> Bean<T> {
    /// Makes a bean of a value.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T: ?Sized> Bean<T> {
    pub(crate) fn into_arc(self) -> Arc<T> {
        self.0
    }
}

impl<T: ?Sized> From<Arc<T>> for Bean<T> {
    fn from(value: Arc<T>) -> Self {
        Self(value)
    }
}

impl<T: ?Sized> Clone for Bean<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> Deref for Bean<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Bean<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bean").field(&&*self.0).finish()
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for Bean<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A type that a bean is asked for by, checked before the application starts.
#[derive(Clone, Copy, Debug)]
pub struct BeanRequest {
    /// The type's name, for errors.
    pub type_name: fn() -> &'static str,
    /// The type itself.
    pub type_id: fn() -> TypeId,
}

impl BeanRequest {
    /// The request for a `Bean<T>`.
    #[must_use]
    pub const fn of<T: ?Sized + 'static>() -> Self {
        Self { type_name: type_name::<T>, type_id: TypeId::of::<T> }
    }
}

impl PartialEq for BeanRequest {
    fn eq(&self, other: &Self) -> bool {
        (self.type_id)() == (other.type_id)()
    }
}

impl Eq for BeanRequest {}

//! Bean types that `[beans.NAME] type = "…"` can name.

use std::marker::PhantomData;
use std::sync::Arc;

use corriere_templates::MessageConverter;

use super::{Bean, BeanArgument, BeanBuildError, BeanConstructor, BeanRequest, BeanSettings};

/// A type name for `[beans.NAME] type = "…"` and how a bean of it is made. `#[corriere::bean]` registers it.
///
/// One whose beans are message converters is one for `[message_converters.NAME]` too.
#[derive(Debug)]
pub struct BeanType {
    /// What stands in the configuration.
    pub name: &'static str,
    /// The Rust type.
    pub bean: BeanRequest,
    /// Whether its beans are message converters.
    pub is_converter: bool,
    /// What its constructor takes.
    pub arguments: &'static [BeanArgument],
    /// Reads the configuration of one bean, without making it.
    pub prepare: fn(BeanSettings) -> Result<BeanConstructor, BeanBuildError>,
}

inventory::collect!(BeanType);

impl BeanType {
    /// All bean types that are linked into the program, in no order.
    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        inventory::iter::<Self>.into_iter()
    }

    /// Every type that its beans can be asked for by.
    pub(crate) fn meets(&self) -> Vec<BeanRequest> {
        let converter = self.is_converter.then(BeanRequest::of::<dyn MessageConverter>);
        std::iter::once(self.bean).chain(converter).collect()
    }
}

/// A bean of this type as a message converter.
pub type AsConverter<T> = fn(Bean<T>) -> Bean<dyn MessageConverter>;

/// The question whether a bean's type is a message converter.
#[derive(Debug)]
pub struct ConverterProbe<T>(PhantomData<T>);

impl<T: MessageConverter> ConverterProbe<T> {
    /// The bean as one.
    pub const AS_CONVERTER: Option<AsConverter<T>> =
        Some(|bean| Bean::from(bean.into_arc() as Arc<dyn MessageConverter>));
}

/// The answer for a type that is none.
pub trait NoConverter {
    /// The type.
    type Value;

    /// It cannot be had as one.
    const AS_CONVERTER: Option<AsConverter<Self::Value>> = None;
}

impl<T> NoConverter for ConverterProbe<T> {
    type Value = T;
}

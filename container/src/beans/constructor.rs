//! What the constructor of a `#[corriere::bean]` takes and returns.
//!
//! As for the arguments of a listener, the emitted code asks the types and not their spelling.

use std::collections::VecDeque;
use std::error::Error as StdError;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::{Bean, BeanBuildError, BeanError, BeanRequest, BeanSettings, MadeBean};
use crate::listener::BoxFuture;

/// A constructor that has read its configuration and waits for the beans that it needs.
pub type BeanConstructor =
    Box<dyn FnOnce(ArgumentBeans) -> BoxFuture<'static, Result<MadeBean, BeanBuildError>> + Send>;

/// The beans that a constructor needs, in the order of its arguments.
#[derive(Debug)]
pub struct ArgumentBeans(VecDeque<Arc<MadeBean>>);

impl ArgumentBeans {
    pub(super) fn new(beans: impl IntoIterator<Item = Arc<MadeBean>>) -> Self {
        Self(beans.into_iter().collect())
    }

    /// The next one.
    ///
    /// # Errors
    /// Never for the beans that were asked for.
    pub fn take<T: ?Sized + 'static>(&mut self) -> Result<Bean<T>, BeanBuildError> {
        let bean = self.0.pop_front().and_then(|bean| bean.form::<T>());
        let type_name = std::any::type_name::<T>();
        Ok(bean.ok_or_else(|| BeanError::NoSuchType { type_name, known: Vec::new() })?)
    }
}

/// An argument of a bean's constructor: another bean, or the bean's configuration.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a bean's constructor",
    label = "neither a bean nor a configuration that can be deserialized",
    note = "another bean is taken as `Bean<T>`",
    note = "a configuration is what stands in `[beans.NAME]` besides the type; it needs `#[derive(serde::Deserialize)]`, and to be `Send`"
)]
pub trait ConstructorArgument<Via>: Sized {
    /// Reads what is known of it before any constructor is called, and answers with what makes it of the beans that its
    /// constructor needs.
    ///
    /// # Errors
    /// When the configuration is not what it should be.
    fn prepare(
        settings: BeanSettings,
    ) -> Result<
        impl FnOnce(&mut ArgumentBeans) -> Result<Self, BeanBuildError> + Send + 'static,
        BeanBuildError,
    >;
}

/// The two kinds of arguments; see [`ConstructorArgument`].
pub mod via {
    /// Another bean.
    #[derive(Clone, Copy, Debug)]
    pub enum Bean {}

    /// The bean's configuration.
    #[derive(Clone, Copy, Debug)]
    pub enum Configuration {}

    /// Neither, for the error to say so instead of what one of the two would need.
    #[derive(Clone, Copy, Debug)]
    pub enum Neither {}
}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + Send + 'static> ConstructorArgument<via::Configuration> for T {
    fn prepare(
        settings: BeanSettings,
    ) -> Result<
        impl FnOnce(&mut ArgumentBeans) -> Result<Self, BeanBuildError> + Send + 'static,
        BeanBuildError,
    > {
        let read = settings.read()?;
        Ok(move |_: &mut ArgumentBeans| Ok(read))
    }
}

impl<T: ?Sized + Send + Sync + 'static> ConstructorArgument<via::Bean> for Bean<T> {
    fn prepare(
        _settings: BeanSettings,
    ) -> Result<
        impl FnOnce(&mut ArgumentBeans) -> Result<Self, BeanBuildError> + Send + 'static,
        BeanBuildError,
    > {
        Ok(ArgumentBeans::take::<T>)
    }
}

/// The questions about an argument's type.
#[derive(Debug)]
pub struct ArgumentProbe<T>(PhantomData<T>);

impl<T: ?Sized + 'static> ArgumentProbe<Bean<T>> {
    /// Whether it is a bean.
    pub const IS_BEAN: bool = true;

    /// Which one.
    pub const BEANS: &'static [BeanRequest] = &[BeanRequest::of::<T>()];
}

impl<T: DeserializeOwned + Send + 'static> ArgumentProbe<T> {
    /// Whether it is the configuration.
    pub const IS_CONFIGURATION: bool = true;
}

/// The answers for a type that is no bean.
pub trait NoBean {
    /// It is none.
    const IS_BEAN: bool = false;

    /// It needs none.
    const BEANS: &'static [BeanRequest] = &[];
}

/// The answers for a type that is no configuration.
pub trait NoConfiguration {
    /// It is none.
    const IS_CONFIGURATION: bool = false;
}

impl<T> NoBean for ArgumentProbe<T> {}
impl<T> NoConfiguration for ArgumentProbe<T> {}

/// How an argument is made, by what was answered of its type.
#[derive(Debug)]
pub enum BeanWay<const IS_BEAN: bool, const IS_CONFIGURATION: bool> {}

/// A way as the parameter of [`ConstructorArgument`].
pub trait ChosenBeanWay {
    /// The parameter.
    type Via;
}

impl ChosenBeanWay for BeanWay<true, false> {
    type Via = via::Bean;
}

impl ChosenBeanWay for BeanWay<false, true> {
    type Via = via::Configuration;
}

impl ChosenBeanWay for BeanWay<false, false> {
    type Via = via::Neither;
}

/// The bean that a constructor returns, which is the value of its `Result` if it returns one.
pub trait ConstructorOutput<const IS_RESULT: bool> {
    /// The bean.
    type Bean;
}

impl<T> ConstructorOutput<false> for T {
    type Bean = T;
}

impl<T, E> ConstructorOutput<true> for Result<T, E> {
    type Bean = T;
}

/// What the constructor of a bean may return: the bean, or a `Result` of it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what the constructor of a `#[corriere::bean]` returns",
    label = "expected the bean or a `Result` of it, with an error `E: std::error::Error + Send + Sync + 'static`"
)]
pub trait IntoBean<T> {
    /// The bean, or why there is none.
    ///
    /// # Errors
    /// [`BeanBuildError::Constructor`].
    fn into_bean(self) -> Result<Bean<T>, BeanBuildError>;
}

impl<T> IntoBean<T> for T {
    fn into_bean(self) -> Result<Bean<T>, BeanBuildError> {
        Ok(Bean::new(self))
    }
}

impl<T, E> IntoBean<T> for Result<T, E>
where
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    fn into_bean(self) -> Result<Bean<T>, BeanBuildError> {
        self.map(Bean::new).map_err(|error| BeanBuildError::Constructor(error.into()))
    }
}

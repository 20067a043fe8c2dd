//! A bean that was made.

use std::any::{Any, type_name};
use std::fmt;

use corriere_templates::MessageConverter;

use super::closing::Closer;
use super::{Bean, BeanRequest, CloseKind, Closed};
use crate::listener::BoxFuture;

/// A bean that was made, in every form in which it can be asked for.
pub struct MadeBean {
    type_name: &'static str,
    forms: Vec<Form>,
    /// Borrows the value within the first form, which needs the type that only the constructor knows.
    value: fn(&dyn Any) -> Option<&dyn Any>,
    closer: Option<Closer>,
}

struct Form {
    request: BeanRequest,
    /// A [`Bean`] of that type.
    bean: Box<dyn Any + Send + Sync>,
}

impl MadeBean {
    /// A bean of this type and no other.
    pub fn new<T: Send + Sync + 'static>(bean: Bean<T>) -> Self {
        let form = Form { request: BeanRequest::of::<T>(), bean: Box::new(bean) };
        Self { type_name: type_name::<T>(), forms: vec![form], value: value::<T>, closer: None }
    }

    /// A message converter of which nothing else is known.
    pub fn converter(converter: Bean<dyn MessageConverter>) -> Self {
        let request = BeanRequest::of::<dyn MessageConverter>();
        let form = Form { request, bean: Box::new(converter) };
        Self { type_name: (request.type_name)(), forms: vec![form], value: |_| None, closer: None }
    }

    /// The same, which is a message converter as well.
    #[must_use]
    pub fn and_converter(mut self, converter: Bean<dyn MessageConverter>) -> Self {
        self.forms.extend(Self::converter(converter).forms);
        self
    }

    /// The same, closed by this function before it is dropped.
    #[must_use]
    pub fn closed_by<T: Send + Sync + 'static>(
        mut self,
        bean: Bean<T>,
        kind: CloseKind,
        close: fn(Bean<T>) -> BoxFuture<'static, Closed>,
    ) -> Self {
        self.closer = Some(Closer::new(bean, kind, close));
        self
    }

    pub(crate) fn type_name(&self) -> &'static str {
        self.type_name
    }

    /// Every type that it can be asked for by.
    pub(crate) fn meets(&self) -> impl Iterator<Item = BeanRequest> {
        self.forms.iter().map(|form| form.request)
    }

    /// The bean as a `T`, if it is one.
    pub(crate) fn form<T: ?Sized + 'static>(&self) -> Option<Bean<T>> {
        self.forms.iter().find_map(|form| form.bean.downcast_ref::<Bean<T>>()).cloned()
    }

    /// A copy of the value, or, where `T` is a `Bean<_>`, the bean itself.
    pub(super) fn copy<T: Clone + 'static>(&self) -> Option<T> {
        let forms = self.forms.iter().map(|form| &*form.bean as &dyn Any);
        let shared = forms.clone().find_map(|bean| bean.downcast_ref::<T>());
        let mut values = forms.filter_map(self.value);
        shared.or_else(|| values.find_map(|value| value.downcast_ref::<T>())).cloned()
    }

    /// Closes it, if its type says how.
    pub(super) fn closer(&self) -> Option<&Closer> {
        self.closer.as_ref()
    }
}

/// The value of a `Bean<T>`.
fn value<T: 'static>(bean: &dyn Any) -> Option<&dyn Any> {
    let bean: &T = bean.downcast_ref::<Bean<T>>()?;
    Some(bean)
}

impl fmt::Debug for MadeBean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MadeBean").field(&self.type_name).finish()
    }
}

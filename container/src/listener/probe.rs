//! What `#[jms_listener]` asks of an argument's type at compile time.
//!
//! The questions must not demand anything of the type: a type that cannot be an argument is reported once, where the
//! argument is made. So an inherent constant with a bound answers where the bound holds, and else a trait's constant of
//! the same name does.

use std::marker::PhantomData;

use super::{FromDelivery, via};
use crate::beans::BeanRequest;

/// The questions about `T`.
#[derive(Debug)]
pub struct Probe<T>(PhantomData<T>);

impl<T: FromDelivery<via::Body>> Probe<T> {
    /// Whether it is a payload by being deserializable.
    pub const IS_BODY: bool = T::IS_PAYLOAD;
}

impl<T: FromDelivery<via::Context>> Probe<T> {
    /// Whether it is a payload in other ways.
    pub const IS_PAYLOAD: bool = T::IS_PAYLOAD;

    /// The beans that it needs.
    pub const BEANS: &'static [BeanRequest] = T::BEANS;
}

/// The answers for a type that is not deserializable.
pub trait NoBody {
    /// It is no payload that way.
    const IS_BODY: bool = false;
}

/// The answers for a type that is not made from the delivery's surroundings.
pub trait NoContext {
    /// It is no payload that way.
    const IS_PAYLOAD: bool = false;

    /// It needs no beans.
    const BEANS: &'static [BeanRequest] = &[];
}

impl<T> NoBody for Probe<T> {}
impl<T> NoContext for Probe<T> {}

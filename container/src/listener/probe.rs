//! What `#[jms_listener]` asks of a type at compile time.
//!
//! The questions must not demand anything of the type: a type that does not fit is reported once, where it is used. So an
//! inherent constant with a bound answers where the bound holds, and else a trait's constant of the same name does. And
//! they are asked of the type and not of its spelling: an alias answers as what it stands for.

use std::marker::PhantomData;

use super::{FromDelivery, returned, via};
use crate::beans::BeanRequest;

/// The questions about an argument's type.
#[derive(Debug)]
pub struct Probe<T>(PhantomData<T>);

impl<T: FromDelivery<via::Body>> Probe<T> {
    /// Whether it is a payload by being deserializable.
    pub const IS_BODY: bool = T::IS_PAYLOAD;
}

impl<T: FromDelivery<via::Context>> Probe<T> {
    /// Whether it is made from the delivery's surroundings.
    pub const IS_CONTEXT: bool = true;

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
    /// It is not.
    const IS_CONTEXT: bool = false;

    /// It is no payload that way.
    const IS_PAYLOAD: bool = false;

    /// It needs no beans.
    const BEANS: &'static [BeanRequest] = &[];
}

impl<T> NoBody for Probe<T> {}
impl<T> NoContext for Probe<T> {}

/// The questions about a return type.
#[derive(Debug)]
pub struct Returns<T>(PhantomData<T>);

impl<T, E> Returns<Result<T, E>> {
    /// Whether it can say that the run failed.
    pub const IS_RESULT: bool = true;
}

impl<E> Returns<Result<(), E>> {
    /// Whether there is more to it than `()`.
    pub const REPLIES: bool = false;
}

impl Returns<()> {
    /// Whether there is more to it than `()`.
    pub const REPLIES: bool = false;
}

impl<T, E> Returns<Option<Result<T, E>>> {
    /// Whether an error in it would be taken for a value.
    pub const HIDES_AN_ERROR: bool = true;
}

/// The answers for any other return type.
pub trait PlainReturn {
    /// It is a reply.
    const IS_RESULT: bool = false;

    /// It is one.
    const REPLIES: bool = true;

    /// It hides none.
    const HIDES_AN_ERROR: bool = false;
}

impl<T> PlainReturn for Returns<T> {}

/// How an argument is made, by what was answered of its type.
#[derive(Debug)]
pub enum Way<const IS_CONTEXT: bool, const IS_BODY: bool> {}

/// A way as the parameter of [`FromDelivery`].
pub trait ChosenWay {
    /// The parameter.
    type Via;
}

impl ChosenWay for Way<true, false> {
    type Via = via::Context;
}

// A type that is both is refused with a text of its own, which no error about the way should go with.
impl ChosenWay for Way<true, true> {
    type Via = via::Context;
}

impl ChosenWay for Way<false, true> {
    type Via = via::Body;
}

impl ChosenWay for Way<false, false> {
    type Via = Neither;
}

/// The way of a type that cannot be an argument, for the error to say so instead of what one of the two would need.
#[derive(Debug)]
pub enum Neither {}

/// What kind of return type it is, by what was answered of it.
#[derive(Debug)]
pub enum Kind<const IS_RESULT: bool> {}

/// A kind as the parameter of [`IntoOutcome`](super::IntoOutcome).
pub trait ChosenKind {
    /// The parameter, around that of [`IntoReply`](super::IntoReply).
    type Of<Reply>;
}

impl ChosenKind for Kind<true> {
    type Of<Reply> = returned::Fallible<Reply>;
}

impl ChosenKind for Kind<false> {
    type Of<Reply> = returned::Plain<Reply>;
}

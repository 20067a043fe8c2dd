//! How a run of a listener ended.

use corriere_core::Message;
use corriere_templates::MessageConverter;

use super::{IntoListenerError, IntoReply, ListenerError};

/// How a run of a listener ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The function returned `Ok`, or a value that cannot fail.
    Handled {
        /// What it wants to be sent.
        reply: Option<Message>,
    },
    /// The function, or one of its arguments, failed.
    Failed(ListenerError),
}

impl Outcome {
    /// Handled, without a reply.
    pub const DONE: Self = Self::Handled { reply: None };
}

impl From<Result<Option<Message>, ListenerError>> for Outcome {
    fn from(result: Result<Option<Message>, ListenerError>) -> Self {
        match result {
            Ok(reply) => Self::Handled { reply },
            Err(error) => Self::Failed(error),
        }
    }
}

/// What a `#[jms_listener]` function may return: nothing, a reply, or a `Result` of either.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be what a `#[jms_listener]` function returns",
    label = "neither `()`, a reply, nor a `Result` of one",
    note = "a reply is any type with `#[derive(serde::Serialize)]`, an `Option` of it, or `Reply<T>`"
)]
pub trait IntoOutcome<Kind> {
    /// The outcome; a reply is made a message by `converter`.
    fn into_outcome(self, converter: &dyn MessageConverter) -> Outcome;
}

/// The kinds of return types; see [`IntoOutcome`].
pub mod returned {
    use std::marker::PhantomData;

    /// A value that is no `Result`.
    #[derive(Clone, Copy, Debug)]
    pub struct Plain<Kind>(PhantomData<Kind>);

    /// A `Result`.
    #[derive(Clone, Copy, Debug)]
    pub struct Fallible<Kind>(PhantomData<Kind>);

    /// A reply that is converted as it is.
    #[derive(Clone, Copy, Debug)]
    pub enum Value {}

    /// A [`Reply`](crate::listener::Reply).
    #[derive(Clone, Copy, Debug)]
    pub enum Decorated {}
}

impl<T: IntoReply<Kind>, Kind> IntoOutcome<returned::Plain<Kind>> for T {
    fn into_outcome(self, converter: &dyn MessageConverter) -> Outcome {
        self.into_reply(converter).into()
    }
}

impl<T: IntoReply<Kind>, E: IntoListenerError, Kind> IntoOutcome<returned::Fallible<Kind>> for Result<T, E> {
    fn into_outcome(self, converter: &dyn MessageConverter) -> Outcome {
        match self {
            Ok(value) => value.into_reply(converter).into(),
            Err(error) => Outcome::Failed(error.into_listener_error()),
        }
    }
}

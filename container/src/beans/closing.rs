//! What `#[corriere::bean(close = "…")]` calls, and what that may return.

use std::error::Error as StdError;
use std::future::{Ready, ready};

/// Why a bean was not closed.
pub type CloseError = Box<dyn StdError + Send + Sync>;

/// What came of closing a bean.
pub type Closed = Result<(), CloseError>;

/// What the method returned that closes a bean: its result, or the future of it. The emitted code does not know which of
/// the two it is, so it calls `finish`, which is there for both.
#[derive(Debug)]
pub struct Closing<R>(pub R);

impl<F: Future + Send> Closing<F> {
    /// Awaits the end.
    ///
    /// # Errors
    /// That of the method.
    pub async fn finish(self) -> Closed
    where
        F::Output: IntoClosed,
    {
        self.0.await.into_closed()
    }
}

/// The `finish` of a method that is not async, and has ended by now.
pub trait ClosedAtOnce {
    /// What the method returned.
    type Returned;

    /// The end.
    fn finish(self) -> Ready<Closed>
    where
        Self::Returned: IntoClosed;
}

impl<R> ClosedAtOnce for Closing<R> {
    type Returned = R;

    fn finish(self) -> Ready<Closed>
    where
        R: IntoClosed,
    {
        ready(self.0.into_closed())
    }
}

/// What a method that closes a bean may return: nothing, or a `Result`, whose value does not matter.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what the method returns that closes a `#[corriere::bean]`",
    label = "expected nothing or a `Result` with an error `E: std::error::Error + Send + Sync + 'static`"
)]
pub trait IntoClosed {
    /// What came of it.
    ///
    /// # Errors
    /// That of the `Result`.
    fn into_closed(self) -> Closed;
}

impl IntoClosed for () {
    fn into_closed(self) -> Closed {
        Ok(())
    }
}

impl<T, E: Into<CloseError>> IntoClosed for Result<T, E> {
    fn into_closed(self) -> Closed {
        self.map(drop).map_err(Into::into)
    }
}

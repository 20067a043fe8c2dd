//! What `#[corriere::bean(close = "…")]` calls, and what that may return.

use std::error::Error as StdError;
use std::future::{Ready, ready};
use std::marker::PhantomData;
use std::sync::Arc;

use corriere_core::panic::{catch_panic, caught};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio_util::task::AbortOnDropHandle;
use tracing::Span;

use super::Bean;
use crate::listener::BoxFuture;

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

/// How a method closes a bean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseKind {
    /// It is async.
    Async,
    /// It may block, so it has a thread of its own.
    Blocking,
}

/// The question which of the two a method is, by what it returns. It is not called for that.
#[derive(Debug)]
pub struct CloseProbe<R>(PhantomData<R>);

impl<R> CloseProbe<R> {
    /// The question of this method.
    #[must_use]
    pub fn of<T: 'static>(_method: fn(&'static T) -> R) -> Self {
        Self(PhantomData)
    }
}

impl<F: Future> CloseProbe<F> {
    /// It is async.
    #[must_use]
    pub fn kind(&self) -> CloseKind {
        CloseKind::Async
    }
}

/// The answer for a method that returns no future.
pub trait NotAsync {
    /// It may block.
    fn kind(&self) -> CloseKind {
        CloseKind::Blocking
    }
}

impl<R> NotAsync for CloseProbe<R> {}

/// Closes one bean.
pub(super) struct Closer {
    kind: CloseKind,
    begin: Arc<dyn Fn() -> BoxFuture<'static, Closed> + Send + Sync>,
}

impl Closer {
    pub(super) fn new<T: Send + Sync + 'static>(
        bean: Bean<T>,
        kind: CloseKind,
        close: fn(Bean<T>) -> BoxFuture<'static, Closed>,
    ) -> Self {
        Self { kind, begin: Arc::new(move || close(bean.clone())) }
    }

    /// Closes the bean, and turns a panic into its text. Dropping the future leaves a blocking method running that has
    /// begun, as nothing can end it.
    pub(super) async fn close(&self) -> Result<Closed, String> {
        match self.kind {
            CloseKind::Async => catch_panic::<BoxFuture<'static, Closed>>(&*self.begin).await,
            CloseKind::Blocking => {
                let (begin, runtime, span) = (Arc::clone(&self.begin), Handle::current(), Span::current());
                // The method is called as the future is polled, and has ended when that is.
                let call = move || span.in_scope(|| caught(|| runtime.block_on(begin())));
                // The runtime is going down when there is no answer.
                AbortOnDropHandle::new(spawn_blocking(call))
                    .await
                    .unwrap_or_else(|error| Ok(Err(error.into())))
            }
        }
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

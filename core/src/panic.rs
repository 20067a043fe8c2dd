//! Keeps the panics of handlers from who calls them.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

/// Runs `future` and turns a panic into its text, wherever it happens: in the making of the future, while it runs, or
/// while what is left of it is dropped. Nothing half-done stays reachable, as all of it is dropped here.
///
/// # Errors
/// The panic's text.
pub async fn catch_panic<F: Future + Unpin>(make: impl FnOnce() -> F) -> Result<F::Output, String> {
    let mut guarded = Guarded(Some(caught(make)?));
    let output = std::future::poll_fn(|context| {
        let Some(future) = &mut guarded.0 else { return Poll::Pending };
        match caught(|| Pin::new(future).poll(context)) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await;
    guarded.drop_future().and(output)
}

/// Runs `function` and turns a panic into its text.
///
/// # Errors
/// The panic's text.
pub fn caught<T>(function: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(function)).map_err(|panic| {
        let text = text(&*panic);
        // What somebody panicked with may panic in its turn when it is dropped; then what is left of it is let go.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            leak(again);
        }
        text
    })
}

/// Lets go of a panic whose drop nobody can vouch for.
#[allow(clippy::mem_forget, reason = "each attempt to drop it may be one more panic")]
fn leak(panic: Box<dyn Any + Send>) {
    std::mem::forget(panic);
}

/// A future whose drop does not panic, also when who awaits it is aborted.
struct Guarded<F>(Option<F>);

impl<F> Guarded<F> {
    fn drop_future(&mut self) -> Result<(), String> {
        caught(|| drop(self.0.take()))
    }
}

impl<F> Drop for Guarded<F> {
    fn drop(&mut self) {
        if let Err(panic) = self.drop_future() {
            tracing::error!(panic, "a handler that was ended panicked while it was dropped");
        }
    }
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a value that is no text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    type BoxFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

    struct PanicsWhenDropped;

    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("in the drop");
        }
    }

    #[tokio::test]
    async fn a_panic_is_caught_wherever_it_happens() {
        let made = catch_panic::<BoxFuture>(|| panic!("in the making")).await;
        assert_eq!(made, Err("in the making".to_owned()));
        let polled = catch_panic::<BoxFuture>(|| {
            Box::pin(async {
                tokio::task::yield_now().await;
                panic!("in {}", "the run")
            })
        });
        assert_eq!(polled.await, Err("in the run".to_owned()));
        let dropped = catch_panic(|| {
            let bomb = PanicsWhenDropped;
            Box::pin(std::future::poll_fn(move |_| {
                let _ = &bomb;
                Poll::Ready(1)
            }))
        });
        assert_eq!(dropped.await, Err("in the drop".to_owned()));
        assert_eq!(catch_panic(|| Box::pin(async { 1 })).await, Ok(1));
    }

    #[test]
    fn what_somebody_panicked_with_may_panic_when_it_is_dropped() {
        let caught = caught(|| std::panic::panic_any(PanicsWhenDropped));
        assert_eq!(caught, Err("a value that is no text".to_owned()));
    }

    #[tokio::test]
    async fn a_panic_in_a_run_that_is_ended_stays_within() {
        let mut ended = Box::pin(catch_panic::<BoxFuture>(|| {
            let bomb = PanicsWhenDropped;
            Box::pin(async move {
                let _bomb = bomb;
                std::future::pending::<()>().await;
            })
        }));
        assert!(std::future::poll_fn(|context| Poll::Ready(ended.as_mut().poll(context).is_pending())).await);
        drop(ended);
    }
}

//! One run of a listener.

use std::pin::Pin;
use std::sync::Arc;

use corriere_core::{Delivery, Message, Session};
use corriere_templates::MessageConverter;

use super::ListenerThread;
use crate::beans::{Bean, BeanArgument, BeanError, Beans};

/// A boxed future; each delivery costs one.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One run of a listener: the message and what its arguments are made of.
#[derive(Debug)]
pub struct Invocation {
    listener: &'static str,
    delivery: Delivery,
    converter: Arc<dyn MessageConverter>,
    beans: Arc<Beans>,
    thread: Arc<ListenerThread>,
    /// The argument that is being made; for none, nothing is known of it.
    argument: BeanArgument,
}

impl Invocation {
    /// A run of the listener with this id.
    #[must_use]
    pub fn new(
        listener: &'static str,
        delivery: Delivery,
        converter: Arc<dyn MessageConverter>,
        beans: Arc<Beans>,
    ) -> Self {
        let argument = BeanArgument { name: None, bean: None, requests: &[] };
        Self { listener, delivery, converter, beans, thread: Arc::default(), argument }
    }

    /// The same run, which notes there whether its thread is at work.
    pub(crate) fn on_thread(self, thread: Arc<ListenerThread>) -> Self {
        Self { thread, ..self }
    }

    /// The same run, of which this argument is to be made.
    #[doc(hidden)]
    pub fn for_argument(&mut self, argument: &BeanArgument) -> &mut Self {
        self.argument = *argument;
        self
    }

    pub(super) fn thread(&self) -> &Arc<ListenerThread> {
        &self.thread
    }

    /// The listener's id.
    #[must_use]
    pub fn listener(&self) -> &'static str {
        self.listener
    }

    /// The received message and the handle to settle it.
    #[must_use]
    pub fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    /// The received message.
    #[must_use]
    pub fn message(&self) -> &Message {
        self.delivery.message()
    }

    /// The session that received it.
    #[must_use]
    pub fn session(&self) -> &Session {
        self.delivery.session()
    }

    /// The listener's converter.
    #[must_use]
    pub fn converter(&self) -> &Arc<dyn MessageConverter> {
        &self.converter
    }

    /// The bean of type `T` for the argument that is being made: the one that `#[bean("name")]` names, or the only one of
    /// the type, or that of the argument's name.
    ///
    /// # Errors
    /// When there is none. For a type in [`FromDelivery::BEANS`](super::FromDelivery::BEANS) the start has made sure that
    /// there is.
    pub fn bean<T: ?Sized + Send + Sync + 'static>(&self) -> Result<Bean<T>, BeanError> {
        match self.argument.bean {
            Some(name) => self.beans.named(name),
            None => self.beans.for_argument(self.argument.name),
        }
    }

    /// The application's beans.
    #[must_use]
    pub fn beans(&self) -> &Beans {
        &self.beans
    }
}

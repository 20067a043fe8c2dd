//! The template: sending and receiving in one call each.

mod address;
mod error;
mod receive;
mod send;
mod sessions;
mod settings;

use std::sync::Arc;

use corriere_core::{ConnectionFactory, Destination, Message, MessageId, Session};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::address::{Address, DestinationResolver, DynamicDestinations};
pub use self::error::TemplateError;
pub use self::send::SendBuilder;
use self::sessions::{Purpose, Sessions};
use self::settings::Settings;
pub use self::settings::{JmsTemplateBuilder, ReceiveTimeout};
use crate::converter::MessageConverter;

/// Sends and receives, looking after connection, sessions, conversion and transactions.
///
/// Cheap to clone; clones share one connection, which is made at the first call and again after it was lost, and a bounded
/// number of sessions, one for each call under way.
///
/// # Transactions
///
/// Inside a transacted listener, or a future run with `with_session`, a template **joins**: on the same
/// connection factory it uses that session, so what it sends and receives is committed or rolled back with the
/// rest. On another factory it is independent, which it logs once. [`JmsTemplate::detached`] gives a template that never joins.
/// Tasks that a handler spawns do not join, unless they run within [`with_session`](corriere_core::with_session); a template
/// that a transacted listener was given warns when it is used like that.
///
/// Elsewhere each call stands by itself, as a transaction of its own where the template is
/// [transacted](JmsTemplateBuilder::transacted).
#[derive(Clone, Debug)]
pub struct JmsTemplate {
    sessions: Arc<Sessions>,
    settings: Arc<Settings>,
    joining: Joining,
}

/// What a template does about the transaction around a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joining {
    /// Takes part in it.
    Ambient,
    /// The same, and finds it strange when there is none.
    Expected,
    /// Keeps out of it.
    Detached,
}

impl JmsTemplate {
    /// Builds a template on `factory`.
    pub fn builder(factory: ConnectionFactory) -> JmsTemplateBuilder {
        JmsTemplateBuilder::new(factory)
    }

    fn new(sessions: Arc<Sessions>, settings: Settings) -> Self {
        Self { sessions, settings: Arc::new(settings), joining: Joining::Ambient }
    }

    /// The same template, except that it never joins the transaction around a call: what it sends is sent even if
    /// the handler fails.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self { joining: Joining::Detached, ..self.clone() }
    }

    /// The same template as a transacted listener is given it: it warns, once, when it is used where there is no
    /// transaction, as in a task that the listener spawned without [`with_session`](corriere_core::with_session).
    #[must_use]
    pub fn for_transaction(&self) -> Self {
        match self.joining {
            Joining::Detached => self.clone(),
            Joining::Ambient | Joining::Expected => Self { joining: Joining::Expected, ..self.clone() },
        }
    }

    /// The same template with another receive timeout.
    #[must_use]
    pub fn with_receive_timeout(&self, timeout: impl Into<ReceiveTimeout>) -> Self {
        let settings = Settings { receive_timeout: timeout.into(), ..(*self.settings).clone() };
        Self { settings: Arc::new(settings), ..self.clone() }
    }

    /// The factory of its connection.
    #[must_use]
    pub fn connection_factory(&self) -> &ConnectionFactory {
        self.sessions.factory()
    }

    /// Where calls go that name no destination.
    #[must_use]
    pub fn default_destination(&self) -> Option<&Destination> {
        self.settings.default_destination.as_ref()
    }

    /// How long a receive waits.
    #[must_use]
    pub fn receive_timeout(&self) -> ReceiveTimeout {
        self.settings.receive_timeout
    }

    /// What writes values as messages and reads them.
    #[must_use]
    pub fn message_converter(&self) -> &Arc<dyn MessageConverter> {
        &self.settings.converter
    }

    /// A send to `destination`, to be given options: `template.to("orders").priority(7).convert_and_send(&order)`.
    pub fn to(&self, destination: impl Into<Address>) -> SendBuilder<'_> {
        SendBuilder::new(self, Some(destination.into()))
    }

    /// A send to the default destination, to be given options.
    pub fn sending(&self) -> SendBuilder<'_> {
        SendBuilder::new(self, None)
    }

    /// Sends a copy of `message` to the default destination and returns the id that it got.
    ///
    /// Outside a transaction a persistent message is in the broker's store when this returns. Dropped while it waits: outside a
    /// transaction the message may or may not be sent, inside one the transaction becomes rollback-only.
    ///
    /// # Errors
    /// [`TemplateError::NoDefaultDestination`], or [`TemplateError::Client`] when the broker cannot be reached or refuses.
    pub async fn send(&self, message: &Message) -> Result<MessageId, TemplateError> {
        self.sending().send(message).await
    }

    /// As [`JmsTemplate::send`], to `destination`.
    ///
    /// # Errors
    /// [`TemplateError::Destination`], and as [`JmsTemplate::send`].
    pub async fn send_to(
        &self,
        destination: impl Into<Address>,
        message: &Message,
    ) -> Result<MessageId, TemplateError> {
        self.to(destination).send(message).await
    }

    /// Sends the message that `create` makes with the session that sends it, to the default destination. See
    /// [`JmsTemplate::send`].
    ///
    /// # Errors
    /// What `create` returns, and as [`JmsTemplate::send`].
    pub async fn send_with<F, R>(&self, create: F) -> Result<MessageId, TemplateError>
    where
        F: FnOnce(Session) -> R,
        R: Future<Output = Result<Message, TemplateError>>,
    {
        self.sending().send_with(create).await
    }

    /// Sends `value`, as the converter writes it, to the default destination. See [`JmsTemplate::send`].
    ///
    /// # Errors
    /// [`TemplateError::Conversion`], and as [`JmsTemplate::send`].
    pub async fn convert_and_send<T: Serialize + ?Sized>(
        &self,
        value: &T,
    ) -> Result<MessageId, TemplateError> {
        self.sending().convert_and_send(value).await
    }

    /// As [`JmsTemplate::convert_and_send`], to `destination`.
    ///
    /// # Errors
    /// [`TemplateError::Destination`], and as [`JmsTemplate::convert_and_send`].
    pub async fn convert_and_send_to<T: Serialize + ?Sized>(
        &self,
        destination: impl Into<Address>,
        value: &T,
    ) -> Result<MessageId, TemplateError> {
        self.to(destination).convert_and_send(value).await
    }

    /// Receives a message from the default destination; `None` when none came in time.
    ///
    /// The message is acknowledged as it is returned, or belongs to the transaction around the call. Only this one
    /// message is taken from the broker; from a topic it is one that was sent while the call waited. Dropping the future
    /// neither loses nor counts a message. The one exception is a template that is
    /// [transacted](JmsTemplateBuilder::transacted) and commits by itself: dropped while the commit is under way, the
    /// message may be settled.
    ///
    /// # Errors
    /// [`TemplateError::NoDefaultDestination`], or [`TemplateError::Client`] when the broker cannot be reached or refuses.
    pub async fn receive(&self) -> Result<Option<Message>, TemplateError> {
        self.receive_message(None).await
    }

    /// As [`JmsTemplate::receive`], from `destination`.
    ///
    /// # Errors
    /// [`TemplateError::Destination`], and as [`JmsTemplate::receive`].
    pub async fn receive_from(
        &self,
        destination: impl Into<Address>,
    ) -> Result<Option<Message>, TemplateError> {
        self.receive_message(Some(destination.into())).await
    }

    /// Receives a message from the default destination and reads it as a `T`; `None` when none came in time.
    ///
    /// The message is acknowledged after it was converted. If that fails it stays where it was: the first time without
    /// a trace, from then on as a failed delivery, so that in the end it is among the dead letters. In a
    /// transaction a failed conversion is like any other failure. Dropped, it is as [`JmsTemplate::receive`].
    ///
    /// # Errors
    /// [`TemplateError::Conversion`], and as [`JmsTemplate::receive`].
    pub async fn receive_and_convert<T: DeserializeOwned>(&self) -> Result<Option<T>, TemplateError> {
        self.receive_value(None).await
    }

    /// As [`JmsTemplate::receive_and_convert`], from `destination`.
    ///
    /// # Errors
    /// [`TemplateError::Destination`], and as [`JmsTemplate::receive_and_convert`].
    pub async fn receive_and_convert_from<T: DeserializeOwned>(
        &self,
        destination: impl Into<Address>,
    ) -> Result<Option<T>, TemplateError> {
        self.receive_value(Some(destination.into())).await
    }

    /// Calls `work` with a session: that of the transacted handler around the call, or one made for this call and closed after
    /// it. Where the template is [transacted](JmsTemplateBuilder::transacted), a session of its own is
    /// committed after `Ok` and rolled back after `Err`. Dropped before it is done, it is rolled back.
    ///
    /// # Errors
    /// What `work` returns, or [`TemplateError::Client`] when there is no session or the commit fails.
    pub async fn execute<F, R, T>(&self, work: F) -> Result<T, TemplateError>
    where
        F: FnOnce(Session) -> R,
        R: Future<Output = Result<T, TemplateError>>,
    {
        let mut lease = self.sessions.lease(Purpose::Wait, self.joining).await?;
        let outcome = work(lease.lend()).await;
        lease.settle(outcome).await
    }
}

//! A send with its options.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use corriere_core::{DeliveryMode, Destination, Message, MessageId, Priority, SendOptions, Session, Value};
use serde::Serialize;

use super::JmsTemplate;
use super::address::Address;
use super::error::TemplateError;
use super::sessions::Purpose;

type PostProcessor<'a> = Box<dyn FnOnce(Message) -> Result<Message, TemplateError> + Send + 'a>;

/// A send in the making, from [`JmsTemplate::to`] or [`JmsTemplate::sending`].
///
/// ```no_run
/// # use std::time::Duration;
/// # async fn example(template: corriere_templates::JmsTemplate) -> Result<(), corriere_templates::TemplateError> {
/// template
///     .to("orders")
///     .priority(7)
///     .time_to_live(Duration::from_secs(5))
///     .property("region", "north")
///     .convert_and_send("an order")
///     .await?;
/// # Ok(())
/// # }
/// ```
///
/// What cannot be set, such as a priority of 10, fails the send.
#[must_use = "nothing is sent before one of the `send` methods is awaited"]
pub struct SendBuilder<'a> {
    template: &'a JmsTemplate,
    address: Option<Address>,
    options: SendOptions,
    priority: Option<u8>,
    properties: Vec<(&'a str, Value)>,
    correlation_id: Option<Arc<str>>,
    reply_to: Option<Address>,
    post_processor: Option<PostProcessor<'a>>,
}

impl<'a> SendBuilder<'a> {
    pub(super) fn new(template: &'a JmsTemplate, address: Option<Address>) -> Self {
        Self {
            template,
            address,
            options: template.settings.send_options.clone(),
            priority: None,
            properties: Vec::new(),
            correlation_id: None,
            reply_to: None,
            post_processor: None,
        }
    }

    /// All options at once; those that are `None` stay the template's.
    pub fn options(mut self, options: &SendOptions) -> Self {
        if options.priority.is_some() {
            self.priority = None;
        }
        self.options = options.or(&self.options);
        self
    }

    /// Whether the message survives the end of the broker.
    pub fn delivery_mode(mut self, mode: DeliveryMode) -> Self {
        self.options.delivery_mode = Some(mode);
        self
    }

    /// How urgent the message is, 0 to 9.
    pub fn priority(mut self, level: u8) -> Self {
        self.priority = Some(level);
        self
    }

    /// How long until the message expires; zero for never. A time beyond the end of the calendar is for ever.
    pub fn time_to_live(mut self, time_to_live: Duration) -> Self {
        self.options.time_to_live = Some(time_to_live);
        self
    }

    /// How long the send may wait for memory at the broker.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.options.deadline = Some(deadline);
        self
    }

    /// Sets a property of the message.
    pub fn property(mut self, name: &'a str, value: impl Into<Value>) -> Self {
        self.properties.push((name, value.into()));
        self
    }

    /// Sets the correlation id.
    pub fn correlation_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.correlation_id = Some(id.into());
        self
    }

    /// Sets where a reply is expected.
    pub fn reply_to(mut self, destination: impl Into<Address>) -> Self {
        self.reply_to = Some(destination.into());
        self
    }

    /// Calls `process` with the message that is about to be sent, which it may change or replace. It comes last: after
    /// conversion and after what else this builder sets.
    pub fn post_process(
        mut self,
        process: impl FnOnce(Message) -> Result<Message, TemplateError> + Send + 'a,
    ) -> Self {
        self.post_processor = Some(Box::new(process));
        self
    }

    /// Sends a copy of `message`. See [`JmsTemplate::send`].
    ///
    /// # Errors
    /// As [`JmsTemplate::send`].
    pub async fn send(self, message: &Message) -> Result<MessageId, TemplateError> {
        let destination = self.destination()?;
        let template = self.template;
        let (message, options) = self.finish(message.clone())?;
        let lease = template.sessions.lease(Purpose::Send, template.joining).await?;
        let outcome = lease.session().send(&destination, &message, &options).await;
        lease.settle(outcome.map_err(Into::into)).await
    }

    /// Sends `value` as the template's converter writes it. See [`JmsTemplate::send`].
    ///
    /// # Errors
    /// [`TemplateError::Conversion`], and as [`JmsTemplate::send`].
    pub async fn convert_and_send<T: Serialize + ?Sized>(
        self,
        value: &T,
    ) -> Result<MessageId, TemplateError> {
        let message = self.template.settings.converter.encode(value)?;
        self.send(&message).await
    }

    /// Sends the message that `create` makes with the session that sends it. See [`JmsTemplate::send`].
    ///
    /// # Errors
    /// What `create` returns, and as [`JmsTemplate::send`].
    pub async fn send_with<F, R>(self, create: F) -> Result<MessageId, TemplateError>
    where
        F: FnOnce(Session) -> R,
        R: Future<Output = Result<Message, TemplateError>>,
    {
        let destination = self.destination()?;
        let template = self.template;
        let mut lease = template.sessions.lease(Purpose::Wait, template.joining).await?;
        let outcome = async {
            let message = create(lease.lend()).await?;
            let (message, options) = self.finish(message)?;
            Ok(lease.session().send(&destination, &message, &options).await?)
        }
        .await;
        lease.settle(outcome).await
    }

    fn destination(&self) -> Result<Destination, TemplateError> {
        self.template.settings.destination(self.address.as_ref(), "send to")
    }

    /// The message as it goes out, and how.
    fn finish(self, mut message: Message) -> Result<(Message, SendOptions), TemplateError> {
        let mut options = self.options;
        if let Some(level) = self.priority {
            options.priority = Some(Priority::new(level)?);
        }
        for (name, value) in self.properties {
            message.set_property(name, value)?;
        }
        if let Some(id) = self.correlation_id {
            message.headers_mut().correlation_id = Some(id);
        }
        if let Some(address) = &self.reply_to {
            message.headers_mut().reply_to = Some(self.template.settings.resolve(address)?);
        }
        if let Some(process) = self.post_processor {
            message = process(message)?;
        }
        Ok((message, options))
    }
}

impl fmt::Debug for SendBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendBuilder")
            .field("address", &self.address)
            .field("options", &self.options)
            .field("priority", &self.priority)
            .field("properties", &self.properties)
            .field("correlation_id", &self.correlation_id)
            .field("reply_to", &self.reply_to)
            .finish_non_exhaustive()
    }
}
